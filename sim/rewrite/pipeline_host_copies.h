// What xla_gpu_enable_pipelined_host_offloading does to a program: copies of slices across the host
// link are moved by one iteration, so that a whole iteration hides them.
//
//   offload   before   loop i:   make u        start(u)  done
//             after    peeled:   make u                          carried: u and where it goes
//                      loop i:   start(carried u)   make u   done        one iteration fewer
//                      behind:   start(carried u)   done
//
//   reload    before   loop i:   start  done   use
//             after    in front: start(first)  done              carried: what was fetched
//                      loop i:   use carried     start(next)   done      one iteration fewer
//                      peeled:   use carried
//
// Left out, and left as they are: copies whose index is made of more than scalars of the carry;
// loops outside the entry; loops that copy both ways, since XLA's forward loop offloads and its
// backward loop reloads; and loops that LoopPeeler::can_peel refuses: a carry that is no flat tuple
// or does not begin as one made beside the loop, loops, calls and branches inside, a body that
// another loop runs too, and tuples of the carry that somebody reads whole.
#pragma once

#include "model/base/result.h"
#include "model/program/program.h"

namespace spillway {

/// The program with every offload of a slice in its entry's loops moved to the next iteration, and
/// every reload to the one before. A loop without such copies, or of fewer than two iterations, is
/// left as it is. The order is that of the program: offloads start at the top of the body and end
/// last, reloads start where what they replace has been read and their index is known. Refused: a
/// program in which that order would read something before it is made.
Result<Program> pipeline_host_copies(const Program& program);

}  // namespace spillway
