// The qualifiers of functions that the host, the device, or both call, and how loops are compiled.
#pragma once

#ifdef __CUDACC__
#define SINTER_DEVICE __device__ __forceinline__
#define SINTER_BOTH __host__ __device__ __forceinline__
<<<<<<< HEAD
<<<<<<< HEAD
// A large function that kernels call, where SINTER_DEVICE copies its code to every use.
#define SINTER_CALLED __device__ __noinline__
=======
>>>>>>> cuda-fproducts
// Before a loop over arrays that have to stay in registers.
#define SINTER_UNROLL _Pragma("unroll")
// Before one whose body is large.
=======
// Before a loop over arrays that have to stay in registers.
#define SINTER_UNROLL _Pragma("unroll")
// Before a loop: the device keeps one copy of its body.
>>>>>>> cuda-qproducts
#define SINTER_ROLLED _Pragma("unroll 1")
#else
#define SINTER_DEVICE inline
#define SINTER_BOTH inline
<<<<<<< HEAD
<<<<<<< HEAD
#define SINTER_CALLED inline
=======
>>>>>>> cuda-fproducts
=======
>>>>>>> cuda-qproducts
#define SINTER_UNROLL
#define SINTER_ROLLED
#endif
