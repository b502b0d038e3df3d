// Fusions in the forms that XLA gives them where what they read is computed rather than saved.
//
// Siblings: XLA fuses loops and reductions that read the same array into one of several results,
// but not for the sake of an array that a matrix product by Triton makes.
//
//   before   (a * b, a * c) = fusion(a, b, c)       a, b, c saved
//   after    a * b = fusion(a, b), a * c = fusion(a, c)        a = dot(…)
//
// Norms: XLA makes a norm a kernel by Triton where nobody else needs its sum. Where the backward
// pass needs that sum too, it is computed once, and the norm is a loop that reads it.
//
// Slices: a reduction that reads a slice of a stack hands the slice out to those that fetched it by
// a copy of their own.
#pragma once

#include "model/program/program.h"

namespace spillway {

/// The program with these in the body of `loop`. What is taken apart has its old name with
/// something behind a dot, and everything stands behind what it reads.
Program form_fusions(const Program& program, InstructionId loop);

}  // namespace spillway
