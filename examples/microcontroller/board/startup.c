// Reset: the vector table, the FPU, the sections in RAM, the stack's paint; then main(), then the end of the
// emulation.
#include <stdint.h>

#include "semihosting.h"

// From the linker script.
extern uint32_t ram_data_begin[], ram_data_end[], ram_data_source[], ram_zero_begin[], ram_zero_end[];
extern uint32_t stack_bottom[], stack_top[];

int main(void);

void on_reset(void) {
  // The FPU's coprocessors 10 and 11: full access (CPACR).
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20;
  __asm volatile("dsb\n\tisb" ::: "memory");
  const uint32_t* from = ram_data_source;
  for (uint32_t* to = ram_data_begin; to < ram_data_end;) *to++ = *from++;
  for (uint32_t* to = ram_zero_begin; to < ram_zero_end;) *to++ = 0;
  // Below what this function uses.
  for (volatile uint32_t* to = stack_bottom; (uint32_t*)to < (uint32_t*)__builtin_frame_address(0) - 16;)
    *to++ = STACK_PAINT;
  semihosting_exit(main());
}

// A fault of any kind ends the emulation with an error.
void on_fault(void) {
  semihosting_print("fault\n");
  semihosting_exit(1);
}

__attribute__((section(".vectors"), used)) static const void* const vectors[16] = {stack_top,
                                                                                   (const void*)on_reset,
                                                                                   (const void*)on_fault,
                                                                                   (const void*)on_fault,
                                                                                   (const void*)on_fault,
                                                                                   (const void*)on_fault,
                                                                                   (const void*)on_fault};

uint32_t stack_used(void) {
  const uint32_t* at = stack_bottom;
  while (at < stack_top && *at == STACK_PAINT) ++at;
  return (uint32_t)((const char*)stack_top - (const char*)at);
}

void paint_stack(void) {
  for (volatile uint32_t* to = stack_bottom; (uint32_t*)to < (uint32_t*)__builtin_frame_address(0) - 16;)
    *to++ = STACK_PAINT;
}
