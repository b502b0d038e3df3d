// An index that a body works out once, since something reads it that XLA fuses nothing into (a copy
// to or from the host), is read by everyone who would otherwise work it out: XLA fuses a value into
// its readers only where it can be fused into all of them.
//
//   before   k = fusion(i) = 31 - i      start(stack, k, 0, 0)      fusion(w, i) = w[31 - i] …
//   after    k = fusion(i) = 31 - i      start(stack, k, 0, 0)      fusion(w, k) = w[k] …
#pragma once

#include "sim/rewrite/program_editor.h"

namespace spillway {

/// Has every fusion of the body, asynchronous ones included, that works `index` out from the same
/// value read it. `index` is a fusion of one scalar; where it is no sum or difference of that
/// scalar and constants, nothing is done.
void share_index(ProgramEditor& program, ComputationId body, ComputationEditor::Handle index);

}  // namespace spillway
