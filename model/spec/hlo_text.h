// Writes a module as HLO text, which the reader of model/hlo makes a Program of like any dump. The
// vocabulary is what XLA's finished programs consist of: fusions, products, collectives, loops.
//
// Layouts are left row-major, and transposed views are bitcasts: sizes are XLA's, which is what
// memory and traffic hang on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/program/shape.h"

namespace spillway {

struct HloArray {
  ElementType type = ElementType::kF32;
  std::vector<std::int64_t> dims;
};
std::string to_text(const HloArray& array);
std::int64_t element_count(const HloArray& array);

/// Something to read: "%fusion.3", or "%while.2#4", an element of a tuple.
struct HloValue {
  std::string ref;
  HloArray array;
};
using HloValues = std::vector<HloValue>;

/// The module: finished computations, names, source lines.
class HloText {
 public:
  /// `base` with a number behind it.
  std::string unique(std::string_view base);
  std::int64_t next_channel() { return ++channels_; }
  /// A computation is finished: its text, with the closing brace.
  void add(std::string computation) { computations_ += std::move(computation) + "\n"; }
  /// The frame of a source line "file:1", for metadata.
  std::size_t frame(const std::string& file);
  /// Two-operand computations that reductions apply: "add", "maximum" of f32.
  std::string reducer(std::string_view operation, ElementType type);

  /// The whole module with `entry`, which add_entry has finished.
  std::string finish(std::string_view header) const;

 private:
  std::string computations_;
  std::map<std::string, int, std::less<>> counts_;
  std::vector<std::string> files_;
  std::map<std::string, std::string> reducers_;
  std::int64_t channels_ = 0;
};

/// A computation being written, instruction by instruction, in the order they are added.
class HloBlock {
 public:
  /// `scope` begins every operation's JAX name; "transpose(jvp())" says that it is backward.
  HloBlock(HloText& module, std::string name, std::string scope)
      : module_(&module), name_(std::move(name)), scope_(std::move(scope)) {}

  HloText& module() { return *module_; }
  const std::string& name() const { return name_; }

  HloValue parameter(int number, const HloArray& array, std::string_view op_name = {});
  /// One parameter that is a tuple of all these.
  HloValues tuple_parameter(const std::vector<HloArray>& arrays);
  HloValue constant(const HloArray& array, std::string_view literal);
  /// `text` is all behind the shape: "copy(%x)".
  HloValue add(std::string_view base, const HloArray& array, const std::string& text);
  HloValues add_tuple(std::string_view base, const std::vector<HloArray>& arrays,
                      const std::string& text);
  /// The same elements under another shape; the value itself where it has it already.
  HloValue view(const HloValue& value, std::vector<std::int64_t> dims);
  HloValue copy(const HloValue& value);
  /// A tuple of values; what to call it.
  std::string group(const HloValues& values);
  /// An instruction whose shape no HloValue can say: an asynchronous start.
  std::string start(std::string_view base, const std::string& shape, const std::string& text);

  /// Instructions from here on belong to a named value of the user's program; "" to none.
  void set_source(std::string name) { source_ = std::move(name); }
  const std::string& source() const { return source_; }

  /// Products from here on read their operands in this type; empty: as they are.
  void set_product_type(std::optional<ElementType> type) { product_type_ = type; }
  std::optional<ElementType> product_type() const { return product_type_; }

  /// Closes it with the given results, as a tuple where `tuple` is set.
  void finish(const HloValues& results, bool tuple, bool entry = false);

 private:
  std::string metadata(std::string_view operation) const;

  HloText* module_;
  std::string name_, scope_, source_;
  std::optional<ElementType> product_type_;
  std::string parameters_;
  std::string body_;
};

std::string join_refs(const HloValues& values);

}  // namespace spillway
