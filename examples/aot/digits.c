/* The gradient of the digit classifier's loss, compiled ahead of time and called from C: no Wengert, no LLVM, no C++.
 *
 *   wengert train digits --write-object DIR
 *   cc -IDIR digits.c DIR/digits_gradient.o -lm -o digits && ./digits DIR/digits_gradient.bin
 *
 * The file holds the arguments' bytes: x f32[32,64], y i32[32], then the weights. The results are the loss and its
 * gradients. */
#include "digits_gradient.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUTS = 6, RESULTS = DIGITS_GRADIENT_NUM_ARGS - INPUTS };

int main(int argc, char **argv) {
  const size_t elements[] = {
      DIGITS_GRADIENT_ARG0_ELEMENTS, DIGITS_GRADIENT_ARG1_ELEMENTS, DIGITS_GRADIENT_ARG2_ELEMENTS,
      DIGITS_GRADIENT_ARG3_ELEMENTS, DIGITS_GRADIENT_ARG4_ELEMENTS, DIGITS_GRADIENT_ARG5_ELEMENTS,
      DIGITS_GRADIENT_ARG6_ELEMENTS, DIGITS_GRADIENT_ARG7_ELEMENTS, DIGITS_GRADIENT_ARG8_ELEMENTS,
      DIGITS_GRADIENT_ARG9_ELEMENTS, DIGITS_GRADIENT_ARG10_ELEMENTS};
  void *args[INPUTS + RESULTS], *workspace = aligned_alloc(64, (DIGITS_GRADIENT_WORKSPACE_BYTES + 64) / 64 * 64);
  FILE *file = fopen(argc > 1 ? argv[1] : "digits_gradient.bin", "rb");
  for (int i = 0; i < INPUTS + RESULTS; ++i) {
    args[i] = aligned_alloc(64, (elements[i] * 4 + 63) / 64 * 64);
    if (i < INPUTS && (!file || fread(args[i], 4, elements[i], file) != elements[i]))
      return fprintf(stderr, "cannot read argument %d\n", i), 1;
  }
  int32_t code = digits_gradient(args, NULL, workspace);
  if (code)
    return fprintf(stderr, "%s\n", digits_gradient_error(code)), 1;
  printf("from C: loss %.6f", *(float *)args[INPUTS]);
  for (int i = 1; i < RESULTS; ++i) {
    double squares = 0;
    for (size_t j = 0; j < elements[INPUTS + i]; ++j)
      squares += pow(((float *)args[INPUTS + i])[j], 2);
    printf(", gradient %d norm %.6f", i, sqrt(squares));
  }
  return printf("\n"), 0;
}
