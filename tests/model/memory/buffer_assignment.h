// What XLA itself wrote about memory: …-buffer-assignment.txt beside a program.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/read_file.h"
#include "model/memory/assignment.h"

namespace spillway::testing {

/// Where XLA put a value: the size of the value, of its allocation, and its place in it.
struct TruePlace {
  std::int64_t allocation_size = 0;
  std::string kind;  ///< "parameter 5", "temp", …
  std::int64_t size = 0, offset = 0;
};

struct TrueAssignment {
  std::map<std::string, TruePlace> places;  ///< by "loop.3{2} phi"
  std::vector<std::string> order;           ///< of the file: allocation by allocation
  std::vector<std::string> allocations;     ///< size to "5 parameter 3"
};

/// "S(5) temp", "parameter 3 out": an allocation in the words both sides can say.
inline std::string allocation_kind(const Allocation& allocation) {
  std::string kind;
  if (is_host(allocation.space)) kind += "host ";
  if (allocation.parameter) return kind + "parameter " + std::to_string(*allocation.parameter);
  if (allocation.constant) return kind + "constant";
  if (allocation.thread_local_scalar) return kind + "thread-local";
  return kind + (allocation.live_out ? "out" : "temp");
}

inline std::int64_t number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  std::int64_t number = -1;
  if (at != std::string_view::npos)
    std::from_chars(line.data() + at + key.size(), line.data() + line.size(), number);
  return number;
}

inline std::string kind_in(std::string_view line) {
  std::string kind = line.find("color 5,") != std::string_view::npos ? "host " : "";
  if (line.find(" parameter ") != std::string_view::npos)
    return kind + "parameter " + std::to_string(number_after(line, " parameter "));
  for (const std::string_view word : {"constant", "thread-local"})
    if (line.find(word) != std::string_view::npos) return kind + std::string(word);
  return kind + (line.find("maybe-live-out") != std::string_view::npos ? "out" : "temp");
}

/// Reads the file; fails the running test when it cannot.
inline TrueAssignment read_buffer_assignment(const std::string& path) {
  const auto text = read_file(path);
  if (!text.ok()) FAIL(to_text(text.error()));
  TrueAssignment truth;
  TruePlace allocation;
  std::string_view rest = **text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("allocation ")) {
      allocation = {number_after(line, ": size "), kind_in(line), 0, 0};
      truth.allocations.push_back(std::to_string(allocation.allocation_size) + " " +
                                  allocation.kind);
    } else if (line.starts_with(" value: <")) {
      // " value: <1962 loop.3{2} (phi) @0> (size=939524096,offset=0): f32[…]"
      line.remove_prefix(line.find(' ', 9) + 1);
      std::string name(line.substr(0, line.find(" @")));
      if (const std::size_t phi = name.find(" (phi)"); phi != std::string::npos)
        name = name.substr(0, phi) + " phi";
      TruePlace place = allocation;
      place.size = number_after(line, "(size=");
      place.offset = number_after(line, ",offset=");
      truth.places[name] = place;
      truth.order.push_back(name);
    } else if (line.starts_with("Total bytes used")) {
      break;
    }
  }
  return truth;
}

/// How one program compares, value by value.
struct PlaceComparison {
  std::size_t values = 0;       ///< of XLA, outside functions that reductions and fusions apply
  std::size_t placed = 0;       ///< in an allocation of the same kind and size
  std::size_t at_offset = 0;    ///< and at the same offset
  std::string first_different;  ///< a line about the first value whose allocation or size differs
};

inline PlaceComparison compare_places(const Program& program, const MemoryAssignment& memory,
                                      const TrueAssignment& truth) {
  std::map<std::string, ValueId> ours;
  for (const ValueId id : ids(memory.values.values())) {
    const Value& value = memory.values[id];
    const Instruction& in = program[value.defined_at.instruction];
    std::string name(in.name);
    if (value.defined_at.node > 0 || in.shape.is_tuple())
      name += path_to_string(in.shape, value.defined_at.node);
    ours[name + (value.is_phi ? " phi" : "")] = id;
  }
  PlaceComparison result;
  const auto differs = [&](const std::string& line) {
    if (result.first_different.empty()) result.first_different = line;
  };
  for (const std::string& name : truth.order) {
    const TruePlace& theirs = truth.places.at(name);
    if (theirs.kind == "thread-local" || theirs.size == 0) continue;
    const auto found = ours.find(name);
    if (found == ours.end()) {
      if (theirs.kind != "constant") ++result.values, differs(name + ": not a value of ours");
      continue;
    }
    ++result.values;
    const auto cell_id = memory.cell_of[found->second];
    if (!cell_id) {
      differs(name + ": has no place");
      continue;
    }
    const Cell& cell = memory.cells[*cell_id];
    const Allocation& allocation = memory.allocations[cell.allocation];
    const std::string kind = allocation_kind(allocation);
    const std::int64_t size = memory.values[found->second].shape.bytes().value();
    if (kind != theirs.kind || allocation.size != Bytes(theirs.allocation_size) ||
        size != theirs.size) {
      differs(name + ": " + kind + " of " + std::to_string(allocation.size.value()) + ", " +
              std::to_string(size) + " bytes; XLA: " + theirs.kind + " of " +
              std::to_string(theirs.allocation_size) + ", " + std::to_string(theirs.size));
      continue;
    }
    ++result.placed;
    result.at_offset += cell.offset == Bytes(theirs.offset) ? 1 : 0;
  }
  return result;
}

}  // namespace spillway::testing
