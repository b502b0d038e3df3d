#include "model/cost/replica_groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

namespace spillway {
namespace {

/// More than any machine has; larger numbers in a text are taken for damage.
constexpr std::int64_t kMaxDevices = 1 << 20;

/// The product, or nothing where it is no number of devices.
std::optional<std::int64_t> device_product(const std::vector<std::int64_t>& sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1 || size > kMaxDevices) return std::nullopt;
    product *= size;
    if (product > kMaxDevices) return std::nullopt;
  }
  return product;
}

/// Reads a text from the front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool done() {
    skip_blanks();
    return rest_.empty();
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::optional<std::int64_t> integer() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  /// 'name'
  std::optional<std::string_view> quoted() {
    if (!take("'")) return std::nullopt;
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view name = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return name;
  }
  /// open 1, 2, 3 close; empty when it stands otherwise.
  std::optional<std::vector<std::int64_t>> integers(std::string_view open, std::string_view close) {
    std::vector<std::int64_t> list;
    if (!take(open)) return std::nullopt;
    if (take(close)) return list;
    do {
      const auto number = integer();
      if (!number) return std::nullopt;
      list.push_back(*number);
    } while (take(","));
    return take(close) ? std::optional(list) : std::nullopt;
  }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  std::string_view rest_;
};

/// 0, 1, … reshaped to `dims`, then transposed, in the order of memory.
///   dims [2,3], permutation {1,0}:  0 1 2     0 3 1 4 2 5
///                                   3 4 5
std::optional<std::vector<std::int64_t>> transposed_count(const std::vector<std::int64_t>& dims,
                                                          std::vector<std::int64_t> permutation) {
  const auto total = device_product(dims);
  if (!total) return std::nullopt;
  if (permutation.empty()) {
    permutation.resize(dims.size());
    std::iota(permutation.begin(), permutation.end(), 0);
  }
  std::vector<std::int64_t> stride_of(dims.size(), 1), sizes, strides;
  for (std::size_t d = dims.size(); d-- > 1;) stride_of[d - 1] = stride_of[d] * dims[d];
  std::vector<std::int64_t> sorted = permutation;
  std::ranges::sort(sorted);
  for (std::size_t d = 0; d < sorted.size(); ++d)
    if (sorted[d] != static_cast<std::int64_t>(d)) return std::nullopt;
  if (sorted.size() != dims.size()) return std::nullopt;
  for (const std::int64_t d : permutation) {
    sizes.push_back(dims[static_cast<std::size_t>(d)]);
    strides.push_back(stride_of[static_cast<std::size_t>(d)]);
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(*total));
  for (std::size_t k = 0; k < ids.size(); ++k) {
    auto rest = static_cast<std::int64_t>(k);
    for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d])
      ids[k] += rest % sizes[d] * strides[d];
  }
  return ids;
}

/// [16,8]T(1,0)
std::optional<std::vector<std::int64_t>> parse_count(Scanner& scanner) {
  const auto dims = scanner.integers("[", "]");
  if (!dims) return std::nullopt;
  if (!scanner.take("T")) return transposed_count(*dims, {});
  const auto permutation = scanner.integers("(", ")");
  return permutation ? transposed_count(*dims, *permutation) : std::nullopt;
}

std::optional<std::vector<IdGroup>> parse_listed(Scanner scanner) {
  std::vector<IdGroup> groups;
  if (!scanner.take("{")) return std::nullopt;
  if (scanner.take("}")) return groups;
  do {
    auto group = scanner.integers("{", "}");
    if (!group) return std::nullopt;
    groups.push_back(std::move(*group));
  } while (scanner.take(","));
  if (!scanner.take("}") || !scanner.done()) return std::nullopt;
  return groups;
}

std::optional<std::vector<IdGroup>> parse_reshaped(Scanner scanner) {
  const auto shape = scanner.integers("[", "]");
  if (!shape || shape->size() != 2 || !scanner.take("<=")) return std::nullopt;
  const auto ids = parse_count(scanner);
  const auto total = device_product(*shape);
  if (!ids || !total || *total != static_cast<std::int64_t>(ids->size())) return std::nullopt;
  std::vector<IdGroup> groups;
  const std::int64_t size = (*shape)[1];
  for (auto at = ids->begin(); at != ids->end(); at += size) groups.emplace_back(at, at + size);
  return groups;
}

struct Axis {
  std::string_view name;
  std::int64_t size = 1;
};

/// The part of an axis along which a group runs: 'x':(2)4 splits x into 2 x 4 x rest and takes the
/// middle. Devices that differ there only are in one group.
struct GroupedAxis {
  std::size_t axis = 0;
  std::int64_t size = 1;
  std::int64_t inner = 1;  ///< the rest
};

struct Mesh {
  std::vector<Axis> axes;
  std::vector<std::int64_t> ids;
  std::vector<GroupedAxis> grouped;
};

bool parse_axes(Scanner& scanner, Mesh& mesh) {
  std::vector<std::int64_t> sizes;
  if (!scanner.take("[")) return false;
  do {
    const auto name = scanner.quoted();
    if (!name || !scanner.take("=")) return false;
    const auto size = scanner.integer();
    if (!size) return false;
    mesh.axes.push_back({*name, *size});
    sizes.push_back(*size);
  } while (scanner.take(","));
  const auto total = device_product(sizes);
  if (!total || !scanner.take("]")) return false;
  mesh.ids.resize(static_cast<std::size_t>(*total));
  std::iota(mesh.ids.begin(), mesh.ids.end(), 0);
  return true;
}

/// ", device_ids=([4,2]T(1,0))" or ", device_ids=(0,2,1,3)"; neither means in order.
bool parse_device_ids(Scanner& scanner, Mesh& mesh) {
  if (!scanner.take(",")) return true;
  if (!scanner.take("device_ids=(")) return false;
  Scanner ahead = scanner;
  std::optional<std::vector<std::int64_t>> ids;
  if (ahead.take("[")) {
    ids = parse_count(scanner);
    if (!scanner.take(")")) return false;
  } else {
    ids = scanner.integers("", ")");
  }
  if (!ids || ids->size() != mesh.ids.size()) return false;
  mesh.ids = std::move(*ids);
  return true;
}

std::optional<GroupedAxis> parse_grouped_axis(Scanner& scanner, const Mesh& mesh) {
  const auto name = scanner.quoted();
  if (!name) return std::nullopt;
  const auto found = std::ranges::find(mesh.axes, *name, &Axis::name);
  if (found == mesh.axes.end()) return std::nullopt;
  GroupedAxis grouped{static_cast<std::size_t>(found - mesh.axes.begin()), found->size, 1};
  if (!scanner.take(":")) return grouped;
  if (!scanner.take("(")) return std::nullopt;
  const auto outer = scanner.integer();
  if (!outer || !scanner.take(")")) return std::nullopt;
  const auto size = scanner.integer();
  if (!size || *outer < 1 || *size < 1 || *outer > found->size || *size > found->size)
    return std::nullopt;
  if (found->size % (*outer * *size) != 0) return std::nullopt;
  grouped.size = *size;
  grouped.inner = found->size / (*outer * *size);
  return grouped;
}

bool parse_grouped_axes(Scanner& scanner, Mesh& mesh) {
  if (!scanner.take("{")) return false;
  if (scanner.take("}")) return scanner.done();
  do {
    const auto axis = parse_grouped_axis(scanner, mesh);
    if (!axis) return false;
    mesh.grouped.push_back(*axis);
  } while (scanner.take(","));
  return scanner.take("}") && scanner.done();
}

/// A device's place in the mesh with its coordinates along grouped axes set to 0: the same for all
/// devices of a group.
std::int64_t group_key(const Mesh& mesh, std::int64_t place) {
  std::int64_t key = place;
  std::int64_t stride = 1;
  for (std::size_t a = mesh.axes.size(); a-- > 0; stride *= mesh.axes[a].size) {
    const std::int64_t coordinate = place / stride % mesh.axes[a].size;
    for (const GroupedAxis& grouped : mesh.grouped)
      if (grouped.axis == a)
        key -= coordinate / grouped.inner % grouped.size * grouped.inner * stride;
  }
  return key;
}

std::optional<std::vector<IdGroup>> parse_mesh(Scanner scanner) {
  Mesh mesh;
  if (!scanner.take("mesh") || !parse_axes(scanner, mesh)) return std::nullopt;
  if (!parse_device_ids(scanner, mesh) || !parse_grouped_axes(scanner, mesh)) return std::nullopt;
  std::map<std::int64_t, IdGroup> by_key;
  for (std::size_t place = 0; place < mesh.ids.size(); ++place)
    by_key[group_key(mesh, static_cast<std::int64_t>(place))].push_back(mesh.ids[place]);
  std::vector<IdGroup> groups;
  for (auto& [key, group] : by_key) groups.push_back(std::move(group));
  return groups;
}

bool names_no_device_twice(const std::vector<IdGroup>& groups) {
  std::vector<std::int64_t> ids;
  for (const IdGroup& group : groups) ids.insert(ids.end(), group.begin(), group.end());
  std::ranges::sort(ids);
  const bool in_range = ids.empty() || (ids.front() >= 0 && ids.back() < kMaxDevices);
  return in_range && std::ranges::adjacent_find(ids) == ids.end();
}

}  // namespace

std::optional<std::vector<IdGroup>> parse_replica_groups(std::string_view text) {
  std::optional<std::vector<IdGroup>> groups;
  if (text.starts_with('{')) groups = parse_listed(Scanner(text));
  if (text.starts_with('[')) groups = parse_reshaped(Scanner(text));
  if (text.starts_with("mesh")) groups = parse_mesh(Scanner(text));
  return groups && names_no_device_twice(*groups) ? groups : std::nullopt;
}

std::optional<std::vector<IdGroup>> parse_source_target_pairs(std::string_view text) {
  const auto pairs = parse_listed(Scanner(text));
  if (!pairs) return std::nullopt;
  for (const IdGroup& pair : *pairs)
    if (pair.size() != 2 || std::ranges::min(pair) < 0 || std::ranges::max(pair) >= kMaxDevices)
      return std::nullopt;
  return pairs;
}

}  // namespace spillway
