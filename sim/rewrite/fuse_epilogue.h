// Adds that XLA computes at the end of a matrix product: where the one thing done with a product
// is to add it to another value, the product's kernel adds it. A program whose product is saved has
// the add in every fusion that reads the sum; when the product is saved no longer, XLA makes the
// sum once, and its readers read that.
//
//   before   product = dot(a, w)          norm = f(x + product)     next = g(x + product)
//   after    sum = x + dot(a, w)          norm = f(sum)             next = g(sum)
//
// Products by Triton only, custom fusions around a dot; cuBLASLt, which would add in place with
// beta = 1, keeps the add apart.
#pragma once

#include "model/program/program.h"

namespace spillway {

/// The program with such adds in the body of `loop` made by its products. Names stay; what reads a
/// sum comes behind it, otherwise the order stays.
Program fuse_epilogues(const Program& program, InstructionId loop);

}  // namespace spillway
