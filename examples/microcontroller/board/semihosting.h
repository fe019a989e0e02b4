// Files, text and the end of the program by Arm's semihosting, which qemu and debug probes serve. On a board
// of your own, these are your UART, your sensors and your main loop.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STACK_PAINT 0x5AFE57ACu

static inline int32_t semihosting_call(int32_t operation, const void* argument) {
  register int32_t r0 __asm("r0") = operation;
  register const void* r1 __asm("r1") = argument;
  __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static inline void semihosting_print(const char* text) { semihosting_call(0x04, text); }

// Ends the emulation; 0: success.
__attribute__((noreturn)) static inline void semihosting_exit(int code) {
  // The reasons "application exit" and "internal error".
  semihosting_call(0x18, (const void*)(code == 0 ? 0x20026u : 0x20024u));
  for (;;) {
  }
}

// The file's handle, or -1. `mode`: 1 reads, 5 writes, in binary.
static inline int32_t semihosting_open(const char* name, uint32_t name_bytes, uint32_t mode) {
  const uint32_t argument[3] = {(uint32_t)name, mode, name_bytes};
  return semihosting_call(0x01, argument);
}
// The number of bytes that were not read or written: 0 is success.
static inline int32_t semihosting_read(int32_t file, void* to, uint32_t bytes) {
  const uint32_t argument[3] = {(uint32_t)file, (uint32_t)to, bytes};
  return semihosting_call(0x06, argument);
}
static inline int32_t semihosting_write(int32_t file, const void* from, uint32_t bytes) {
  const uint32_t argument[3] = {(uint32_t)file, (uint32_t)from, bytes};
  return semihosting_call(0x05, argument);
}
static inline void semihosting_close(int32_t file) {
  const uint32_t argument[1] = {(uint32_t)file};
  semihosting_call(0x02, argument);
}

// The most bytes of stack that were used since reset, or since paint_stack().
uint32_t stack_used(void);
void paint_stack(void);

#ifdef __cplusplus
}
#endif
