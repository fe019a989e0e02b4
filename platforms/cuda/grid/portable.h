// The qualifiers of functions that the host, the device, or both call, and of loops.
#pragma once

#ifdef __CUDACC__
#define SINTER_DEVICE __device__ __forceinline__
#define SINTER_BOTH __host__ __device__ __forceinline__
// A large function that kernels call; SINTER_DEVICE would copy its code to every use.
#define SINTER_CALLED __device__ __noinline__
// Before a loop over arrays that have to stay in registers.
#define SINTER_UNROLL _Pragma("unroll")
// Before a loop whose body is large: the device keeps one copy of it.
#define SINTER_ROLLED _Pragma("unroll 1")
#else
#define SINTER_DEVICE inline
#define SINTER_BOTH inline
#define SINTER_CALLED inline
#define SINTER_UNROLL
#define SINTER_ROLLED
#endif
