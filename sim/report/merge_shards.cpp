#include "sim/report/merge_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "sim/shard.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

/// What is dealt out to parts, by the name it has in an answer.
constexpr const char* kDealt[] = {"cases", "cells"};

/// A part, with its label taken out and its cases apart.
struct Part {
  std::string path;
  ShardLabel label;
  const char* dealt = "";
  Json cases, rest;
};

/// False where a field is missing or of another kind.
bool read_label(const Json& json, ShardLabel& label) {
  bool is_whole = true;
  visit_label(label, [&]<typename Field>(const char* name, Field& field) {
    const auto found = json.find(name);
    constexpr bool kIsText = std::is_same_v<Field, std::string>;
    const bool is_of_kind =
        found != json.end() && (kIsText ? found->is_string() : found->is_number_unsigned());
    if (is_of_kind) field = found->template get<Field>();
    is_whole &= is_of_kind;
  });
  return is_whole;
}

/// Numbers that are not finite are null in JSON.
bool is_alike(const Json& value, const Json& example) {
  const auto is_number = [](const Json& json) { return json.is_number() || json.is_null(); };
  return value.type() == example.type() || (is_number(value) && is_number(example));
}

/// An error where a case is none; `example` is one, where the answer has one besides.
std::optional<Error> check_cases(const Part& part, const Json& example) {
  for (std::size_t k = 0; k < part.cases.size(); ++k) {
    const Json& one = part.cases[k];
    const std::string which = fmt::format("number {} of its {}", k + 1, part.dealt);
    if (!one.is_object())
      return error_in_file(part.path, which + " is no JSON object", "make the part again");
    for (const auto& [name, value] : example.items())
      if (!one.contains(name) || !is_alike(one[name], value))
        return error_in_file(part.path, which + " has no '" + name + "' as others have",
                             "make the part again");
  }
  const std::size_t share = part.label.shard.share(part.label.cases);
  if (part.cases.size() == share) return std::nullopt;
  return error_in_file(
      part.path,
      fmt::format("has {} {}, and part {} of {} has {} of {}", part.cases.size(), part.dealt,
                  part.label.shard.index, part.label.shard.count, share, part.label.cases),
      "make the part again");
}

Result<Part> read_part(const ShardText& shard) {
  Json json = Json::parse(shard.json, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return error_in_file(shard.path, "is no JSON object");
  const auto* const dealt = std::ranges::find_if(
      kDealt, [&json](const char* name) { return json.contains(name) && json[name].is_array(); });
  Part part{.path = shard.path, .label = {}, .dealt = "", .cases = {}, .rest = {}};
  const bool has_label = json.contains("shard") && json["shard"].is_object() &&
                         dealt != std::end(kDealt) && read_label(json["shard"], part.label);
  if (!has_label || !part.label.shard.is_valid())
    return error_in_file(shard.path, "is no part of a sharded answer",
                         "make parts with --shard I/N --json");
  part.dealt = *dealt;
  part.cases = std::move(json[*dealt]);
  const auto example = json.find("as_compiled");
  if (const auto wrong = check_cases(part, example == json.end() ? Json::object() : *example))
    return *wrong;
  json.erase("shard");
  json[*dealt] = Json::array();
  part.rest = std::move(json);
  return part;
}

/// An error where two parts are not of one answer.
std::optional<Error> check_alike(const Part& part, const Part& first) {
  if (part.label.shard.count != first.label.shard.count)
    return error_in_file(part.path, fmt::format("is one of {} parts, and those before are of {}",
                                                part.label.shard.count, first.label.shard.count));
  if (part.label.question != first.label.question || part.label.cases != first.label.cases ||
      part.rest != first.rest)
    return error_in_file(part.path, "answers another question than " + spillway::quoted(first.path),
                         "all parts need the same files and options, in the same order");
  return std::nullopt;
}

}  // namespace

Result<std::string> merge_shards(const std::vector<ShardText>& shards) {
  std::vector<std::optional<Part>> parts;
  std::size_t first = 0;
  for (const ShardText& shard : shards) {
    Result<Part> read = read_part(shard);
    if (!read.ok()) return read.error();
    Part part = std::move(read).value();
    const auto [index, count] = part.label.shard;
    if (parts.empty()) {
      parts.resize(count);
      first = index - 1;
    } else if (const auto wrong = check_alike(part, *parts[first])) {
      return *wrong;
    }
    std::optional<Part>& place = parts[index - 1];
    if (place)
      return error_in_file(
          shard.path, fmt::format("is part {}, as {} is", index, spillway::quoted(place->path)));
    place = std::move(part);
  }
  const auto missing = std::ranges::find_if(parts, [](const auto& part) { return !part; });
  if (missing != parts.end())
    return usage_error(
        fmt::format("part {} of {} is missing", missing - parts.begin() + 1, parts.size()),
        "name the files of all parts");
  Json whole = std::move(parts[first]->rest);
  Json& cases = whole[parts[first]->dealt];
  for (std::size_t k = 0; k < parts[first]->label.cases; ++k)
    cases.push_back(std::move(parts[k % parts.size()]->cases[k / parts.size()]));
  return whole.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
