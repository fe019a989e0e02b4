// The qualifiers of functions that the host, the device, or both call.
#pragma once

#ifdef __CUDACC__
#define SINTER_DEVICE __device__ __forceinline__
#define SINTER_BOTH __host__ __device__ __forceinline__
#else
#define SINTER_DEVICE inline
#define SINTER_BOTH inline
#endif
