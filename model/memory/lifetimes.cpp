#include "model/memory/lifetimes.h"

namespace spillway {

Lifetimes find_lifetimes(const Program& program, const Schedule& schedule) {
  Lifetimes found;
  found.schedule = flatten(program, schedule);
  found.values = make_values(program, found.schedule);
  found.liveness = find_liveness(program, found.schedule, found.values, InPlacePairs(program));
  return found;
}

}  // namespace spillway
