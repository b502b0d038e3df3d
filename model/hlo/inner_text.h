// What people write into HLO and XLA never prints: operations in place of operands, computations in
// place of their names, operations without a shape.
#pragma once

#include "model/hlo/cursor.h"

namespace spillway::hlo {

/// Whether the cursor is at an operation without a shape in front: add(
inline bool starts_operation(Cursor& cursor) {
  cursor.peek();
  const char* const start = cursor.rest().data();
  const char* at = start;
  while (is(*at, kWord)) ++at;
  if (*at != '(' || at == start) [[likely]]
    return false;
  return at != start + 1 || *start != 'b';  // b(f32[2]) is a shape
}

}  // namespace spillway::hlo
