// A second opinion on a plan, by code that did not make it: slow, obvious, and naming what clashes.
#pragma once

#include <string>
#include <vector>

#include "model/plan/budget.h"
#include "model/program/program.h"

namespace spillway {

/// What is wrong with a program that a plan produced; empty when nothing is.
/// Every instruction reads what stands before it; each start has one done behind it; nobody reads a
/// buffer on the host but copies; each slice reloaded is waited for before it is read; the memory
/// that XLA would allocate stays within the budget.
std::vector<std::string> check_plan(const Program& planned, const Budget& budget);

}  // namespace spillway
