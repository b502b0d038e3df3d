// Shapes in HLO text: bf16[8,4096]{1,0:S(5)}, tuples of them, token[].
#pragma once

#include <memory>
#include <string_view>

#include "model/hlo/cursor.h"
#include "model/hlo/text_table.h"
#include "model/program/shape.h"

namespace spillway::hlo {

/// Reads shapes and interns them by their text: the same text is parsed once.
class ShapeReader {
 public:
  ShapeReader() : pool_(std::make_shared<ShapePool>()) {}

  /// The shape at the cursor. Fails the cursor on anything else: unknown types, sizes beyond 64
  /// bits, nesting beyond 64 levels.
  Shape read(Cursor& cursor);

  /// Keeps every shape read so far, and those to come, alive.
  std::shared_ptr<const ShapePool> pool() const { return pool_; }

 private:
  std::shared_ptr<ShapePool> pool_;
  TextTable<Shape> by_text_;
  ShapeData scratch_;
};

}  // namespace spillway::hlo
