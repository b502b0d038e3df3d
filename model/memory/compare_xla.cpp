#include "model/memory/compare_xla.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <vector>

#include "model/base/format.h"

namespace spillway {
namespace {

/// An allocation in the words that both sides can say.
struct Row {
  enum Kind { kParameter, kConstant, kTemp, kOutput, kThreadLocal } kind = kTemp;
  std::int64_t parameter = 0;
  Bytes size;
  bool host = false;
  const XlaAllocation* xla = nullptr;

  friend bool operator==(const Row& a, const Row& b) {
    return std::tie(a.kind, a.parameter, a.size, a.host) ==
           std::tie(b.kind, b.parameter, b.size, b.host);
  }
};

bool is_thread_local(const Allocation& a) { return a.thread_local_scalar; }
bool is_thread_local(const XlaAllocation& a) { return a.thread_local_memory; }

template <typename A>
Row to_row(const A& a) {
  Row row{.size = a.size, .host = is_host(a.space)};
  row.kind = a.constant           ? Row::kConstant
             : is_thread_local(a) ? Row::kThreadLocal
             : a.live_out         ? Row::kOutput
                                  : Row::kTemp;
  if (a.parameter) row.kind = Row::kParameter, row.parameter = *a.parameter;
  if constexpr (std::is_same_v<A, XlaAllocation>) row.xla = &a;
  return row;
}

template <typename Allocations>
std::vector<Row> to_rows(const Allocations& allocations) {
  std::vector<Row> rows;
  for (const auto& allocation : allocations) rows.push_back(to_row(allocation));
  const auto scalars = std::stable_partition(
      rows.begin(), rows.end(), [](const Row& row) { return row.kind != Row::kThreadLocal; });
  std::ranges::sort(scalars, rows.end(), {}, &Row::size);
  return rows;
}

Bytes sum(const std::vector<Row>& rows, bool host) {
  Bytes total(0);
  for (const Row& row : rows)
    if (row.host == host) total += row.size;
  return total;
}

std::string describe(const Row& row) {
  constexpr const char* kNames[] = {"parameter", "constant", "temporary block", "result",
                                    "thread-local scalar"};
  std::string text = row.host ? "host " : "";
  text += kNames[row.kind];
  if (row.kind == Row::kParameter) text += " " + std::to_string(row.parameter);
  return text + " of " + format_count(row.size.value()) + " bytes";
}

/// The value that takes most of it: the one a person would look for.
std::string largest_value(const XlaAllocation& allocation) {
  const auto largest = std::ranges::max_element(allocation.buffers, {}, &XlaBuffer::size);
  return largest == allocation.buffers.end() ? "" : " for " + largest->defined_by;
}

}  // namespace

std::optional<AssignmentDifference> compare_with_xla(const MemoryAssignment& ours,
                                                     const XlaBufferAssignment& xla) {
  const std::vector<Row> our_rows = to_rows(ours.allocations);
  const std::vector<Row> xla_rows = to_rows(xla.allocations);
  const auto [our, their] = std::ranges::mismatch(our_rows, xla_rows);
  if (our == our_rows.end() && their == xla_rows.end()) return std::nullopt;
  AssignmentDifference difference{.our_device = sum(our_rows, false),
                                  .our_host = sum(our_rows, true),
                                  .xla_device = sum(xla_rows, false),
                                  .xla_host = sum(xla_rows, true),
                                  .first = ""};
  const std::string mine = our == our_rows.end() ? "none" : describe(*our);
  difference.first =
      their == xla_rows.end()
          ? fmt::format("a {} that XLA does not have", mine)
          : fmt::format("XLA's allocation {}, a {}{}, where ours is {}", their->xla->index,
                        describe(*their), largest_value(*their->xla), mine);
  return difference;
}

}  // namespace spillway
