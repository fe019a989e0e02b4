/* C alone: a function of Sinter's by its C++ name, which pulls all backends in. */
#include <stddef.h>
#include <stdio.h>

struct span {
  void* data;
  size_t size;
};
struct span _ZN6sinter16default_backendsEv(void);

int main(void) {
  printf("%zu backends\n", _ZN6sinter16default_backendsEv().size);
  return 0;
}
