// Dead code: what no result of a program depends on, elements that loops carry for nobody among it.
// XLA's WhileLoopSimplifier and HloDCE do the same to what JAX traces.
#pragma once

#include "model/program/program.h"

namespace spillway {

/// The program without instructions that nothing needs, without elements of loops that only hand
/// themselves on, and without results of fusions that nobody reads. Order and names stay;
/// computations without any of these are shared.
Program drop_dead(const Program& program);

}  // namespace spillway
