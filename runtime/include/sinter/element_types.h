/* The element types of tensors, for C and C++. The numbers are those of the file (schemas/model.fbs). */
#ifndef SINTER_ELEMENT_TYPES_H_
#define SINTER_ELEMENT_TYPES_H_

typedef enum sinter_type {
  SINTER_NONE = 0,
  SINTER_FLOAT32 = 1,
  SINTER_FLOAT64 = 2,
  SINTER_FLOAT16 = 3,
  SINTER_BFLOAT16 = 4,
  SINTER_INT8 = 5,
  SINTER_UINT8 = 6,
  SINTER_INT16 = 7,
  SINTER_UINT16 = 8,
  SINTER_INT32 = 9,
  SINTER_UINT32 = 10,
  SINTER_INT64 = 11,
  SINTER_UINT64 = 12,
  SINTER_BOOL = 13 /* one byte, 0 or 1 */
} sinter_type;

#define SINTER_MAX_RANK 8

#endif /* SINTER_ELEMENT_TYPES_H_ */
