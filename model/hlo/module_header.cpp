#include "model/hlo/module_header.h"

#include <optional>

namespace spillway::hlo {
namespace {

/// More devices than any machine has; beyond, a number is damaged.
constexpr std::int64_t kMostDevices = 1 << 20;

std::int64_t read_device_count(Cursor& cursor) {
  cursor.peek();
  const std::size_t start = cursor.position();
  const auto count = cursor.number();
  if (count && *count >= 1 && *count <= kMostDevices) return *count;
  cursor.fail(start, "expected a number of devices from 1 to " + std::to_string(kMostDevices));
  return 1;
}

/// {1,0}
std::vector<std::int64_t> read_path(Cursor& cursor) {
  std::vector<std::int64_t> path;
  cursor.expect('{');
  while (!cursor.failed() && !cursor.accept('}')) {
    if (!path.empty() && !cursor.expect(',')) break;
    if (const auto index = cursor.number())
      path.push_back(*index);
    else
      cursor.fail_here("expected the number of a tuple element");
  }
  return path;
}

/// (1, {0}), or (1, {0}, may-alias).
template <typename Piece>
void read_parameter(Cursor& cursor, Piece& piece) {
  cursor.expect('(');
  const auto parameter = cursor.number();
  if (!parameter || *parameter > std::int64_t{0xffffffff})
    cursor.fail_here("expected the number of a parameter");
  else
    piece.parameter = static_cast<std::uint32_t>(*parameter);
  if (cursor.accept(',')) piece.parameter_path = read_path(cursor);
  if (cursor.accept(',')) cursor.word();  // may-alias or must-alias
  cursor.expect(')');
}

/// {0}: (1, {}, may-alias)
AliasPaths read_alias(Cursor& cursor) {
  AliasPaths alias;
  cursor.peek();
  alias.at = cursor.rest();
  alias.output = read_path(cursor);
  cursor.expect(':');
  read_parameter(cursor, alias);
  return alias;
}

/// (1, {0})
DonorPath read_donor(Cursor& cursor) {
  DonorPath donor;
  cursor.peek();
  donor.at = cursor.rest();
  read_parameter(cursor, donor);
  return donor;
}

template <typename Entry>
std::vector<Entry> read_list(Cursor& cursor, Entry (*read)(Cursor&)) {
  std::vector<Entry> entries;
  cursor.expect('{');
  while (!cursor.failed() && !cursor.accept('}')) {
    if (!entries.empty() && !cursor.expect(',')) break;
    entries.push_back(read(cursor));
  }
  return entries;
}

void read_header_attribute(Cursor& cursor, ModuleHeader& header) {
  const std::string_view name = cursor.word();
  if (name.empty() || !cursor.expect('=')) return cursor.fail_here("expected name=value");
  if (name == "num_partitions")
    header.num_partitions = read_device_count(cursor);
  else if (name == "replica_count")
    header.replica_count = read_device_count(cursor);
  else if (name == "input_output_alias")
    header.aliases = read_list(cursor, read_alias);
  else if (name == "buffer_donor")
    header.donors = read_list(cursor, read_donor);
  else if (const std::string_view value = cursor.attribute_value(); name == "is_scheduled")
    header.is_scheduled = value == "true";
}

/// Calls `use` with each field of {file_name_id=1 line=61}. Fields that hold no number are skipped.
template <typename Use>
void for_each_field(Cursor& cursor, Use use) {
  cursor.expect('{');
  while (!cursor.failed() && !cursor.accept('}')) {
    const std::string_view key = cursor.word();
    if (key.empty() || !cursor.expect('=')) return cursor.fail_here("expected name=value");
    if (const auto number = cursor.number())
      use(key, static_cast<std::uint32_t>(*number));
    else
      cursor.attribute_value();
    cursor.accept(',');
  }
}

std::string_view read_string(Cursor& cursor) {
  const std::string_view quoted = cursor.string();
  return quoted.size() < 2 ? quoted : quoted.substr(1, quoted.size() - 2);
}

StackFrames::Location read_location(Cursor& cursor) {
  StackFrames::Location location;
  for_each_field(cursor, [&location](std::string_view key, std::uint32_t number) {
    if (key == "file_name_id") location.file = number;
    if (key == "line") location.line = number;
  });
  return location;
}

StackFrames::Frame read_frame(Cursor& cursor) {
  StackFrames::Frame frame;
  for_each_field(cursor, [&frame](std::string_view key, std::uint32_t number) {
    if (key == "file_location_id") frame.location = number;
  });
  return frame;
}

/// The rows of one table: 1 "step.py" or 1 {file_name_id=1 line=61}, numbered from 1.
template <typename Row>
void read_rows(Cursor& cursor, std::vector<Row>& rows, Row (*read_row)(Cursor&)) {
  while (is(cursor.peek(), kDigit)) {
    const std::size_t start = cursor.position();
    const auto number = cursor.number();
    if (number != static_cast<std::int64_t>(rows.size()) + 1)
      return cursor.fail(start, "expected row " + std::to_string(rows.size() + 1) +
                                    " of a table that is numbered 1, 2, 3");
    rows.push_back(read_row(cursor));
    if (cursor.failed()) return;
  }
}

/// The node that a path leads to, if there is one.
std::optional<ShapeNodeIndex> node_at(Shape shape, const std::vector<std::int64_t>& path) {
  ShapeNodeIndex node = 0;
  for (const std::int64_t i : path) {
    const Shape here = shape.at(node);
    if (i >= here.tuple_size()) return std::nullopt;
    node += here.element_node(static_cast<std::uint32_t>(i));
  }
  return node;
}

/// The node of a parameter of the entry that a piece names, if there is one.
template <typename Piece>
std::optional<ShapeNodeIndex> parameter_node(const Piece& piece, const Computation& entry) {
  if (piece.parameter >= entry.parameters().size()) return std::nullopt;
  return node_at(entry[entry.parameters()[piece.parameter]].shape, piece.parameter_path);
}

}  // namespace

ModuleHeader read_module_header(Cursor& cursor) {
  ModuleHeader header;
  if (!cursor.accept_word("HloModule")) {
    if (cursor.peek() != '%' && !cursor.rest().starts_with("ENTRY "))
      cursor.fail_here("expected 'HloModule'", "this does not look like HLO text");
    return header;
  }
  header.name = std::string(cursor.name("the name of the module"));
  while (!cursor.failed() && cursor.accept(',')) read_header_attribute(cursor, header);
  if (header.num_partitions * header.replica_count > kMostDevices)
    cursor.fail_here("num_partitions times replica_count is more than " +
                     std::to_string(kMostDevices) + " devices");
  return header;
}

std::shared_ptr<const StackFrames> read_stack_frames(Cursor& cursor) {
  std::shared_ptr<StackFrames> frames;
  std::vector<std::string_view> functions;  // nobody asks for them
  const auto accept_table = [&](std::string_view name) {
    if (!cursor.accept_word(name)) return false;
    if (frames == nullptr) frames = std::make_shared<StackFrames>();
    return true;
  };
  for (;;) {
    if (accept_table("FileNames"))
      read_rows(cursor, frames->files, read_string);
    else if (accept_table("FunctionNames"))
      read_rows(cursor, functions, read_string);
    else if (accept_table("FileLocations"))
      read_rows(cursor, frames->locations, read_location);
    else if (accept_table("StackFrames"))
      read_rows(cursor, frames->frames, read_frame);
    else
      return frames;
  }
}

std::vector<InputOutputAlias> resolve_aliases(const std::vector<AliasPaths>& aliases,
                                              const Computation& entry, Cursor& cursor) {
  std::vector<InputOutputAlias> resolved;
  resolved.reserve(aliases.size());
  const Shape result = entry.shape_of(entry.root());
  for (const AliasPaths& alias : aliases) {
    const auto output = node_at(result, alias.output);
    if (!output) {
      cursor.fail_at(alias.at, "input_output_alias names a result that does not exist");
      return {};
    }
    const auto node = parameter_node(alias, entry);
    if (!node) {
      cursor.fail_at(alias.at, "input_output_alias names a parameter that does not exist");
      return {};
    }
    resolved.push_back({*output, alias.parameter, *node});
  }
  return resolved;
}

std::vector<BufferDonor> resolve_donors(const std::vector<DonorPath>& donors,
                                        const Computation& entry, Cursor& cursor) {
  std::vector<BufferDonor> resolved;
  for (const DonorPath& donor : donors) {
    const auto node = parameter_node(donor, entry);
    if (!node) {
      cursor.fail_at(donor.at, "buffer_donor names a parameter that does not exist");
      return {};
    }
    resolved.push_back({donor.parameter, *node});
  }
  return resolved;
}

}  // namespace spillway::hlo
