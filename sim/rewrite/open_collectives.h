// Undoes what XLA does to collectives after it has ordered a program, so that it can be ordered
// anew.
#pragma once

#include "model/program/program.h"

namespace spillway {

/// Every collective that runs synchronously as a start and a done, next to one another where it
/// stood. XLA orders all of them in that form, and joins those again between which nothing came to
/// stand (GpuConvertAsyncCollectivesToSync).
///
///   before   b = all-gather(a)
///   after    b.start = async-start(a)   wraps   all-gather(param_0)
///            b = async-done(b.start)
///
/// Order and names stay; instructions behind one get other numbers. The start takes over what must
/// run before, start and done both the frontend attributes and the metadata. Collectives within
/// what runs as one, or asynchronously already, stay as they are.
Program open_collectives(const Program& program);

}  // namespace spillway
