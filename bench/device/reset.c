// The vector table of a program with newlib's start on qemu's MPS2 board with a Cortex-M4, which loads the
// sections to where they are linked: switches the FPU on and starts.
#include <stdint.h>

void _start(void);

static void on_reset(void) {
  // Coprocessors 10 and 11: full access (CPACR).
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20;
  __asm volatile("dsb\n\tisb" ::: "memory");
  _start();
}

static void on_fault(void) {
  // The reason "internal error".
  register int32_t r0 __asm("r0") = 0x18;
  register int32_t r1 __asm("r1") = 0x20024;
  __asm volatile("bkpt 0xAB" : : "r"(r0), "r"(r1));
}

__attribute__((section(".vectors"))) const void* const vectors[16] = {
    (const void*)0x20400000, (const void*)on_reset, (const void*)on_fault, (const void*)on_fault,
    (const void*)on_fault,   (const void*)on_fault, (const void*)on_fault};
