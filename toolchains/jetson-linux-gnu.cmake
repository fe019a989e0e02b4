# NVIDIA Jetson: 64-bit ARM Linux with CUDA. The host's nvcc compiles the kernels: device code is the same on every host.
# Xavier is 7.2 and older than what Sinter supports; Orin is 8.7, Thor 11.0, for which the PTX of 8.7 is compiled when a
# session is created.
include("${CMAKE_CURRENT_LIST_DIR}/aarch64-linux-gnu.cmake")
set(SINTER_CUDA ON CACHE STRING "")
set(SINTER_CUDA_ARCHITECTURES 87 CACHE STRING "")
