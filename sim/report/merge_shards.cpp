#include "sim/report/merge_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

/// What is dealt out to parts, by the name it has in an answer.
constexpr const char* kDealt[] = {"cases", "cells"};

/// A part, with its number taken out and its cases apart.
struct Part {
  std::size_t index = 0, count = 0;
  const char* dealt = "";
  Json cases, rest;
};

Result<Part> read_part(const ShardText& shard) {
  Json json = Json::parse(shard.json, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return error_in_file(shard.path, "is no JSON object");
  const auto number = [&json](const char* name) -> std::optional<std::size_t> {
    const auto found = json["shard"].find(name);
    if (found == json["shard"].end() || !found->is_number_unsigned()) return std::nullopt;
    return found->get<std::size_t>();
  };
  const auto* const dealt = std::ranges::find_if(
      kDealt, [&json](const char* name) { return json.contains(name) && json[name].is_array(); });
  const bool has_parts =
      json.contains("shard") && json["shard"].is_object() && dealt != std::end(kDealt);
  const auto index = has_parts ? number("index") : std::nullopt;
  const auto count = has_parts ? number("count") : std::nullopt;
  if (!index || !count || *count < 1 || *index < 1 || *index > *count)
    return error_in_file(shard.path, "is no part of a sharded answer",
                         "make parts with --shard I/N --json");
  Part part{*index, *count, *dealt, std::move(json[*dealt]), {}};
  json.erase("shard");
  json[*dealt] = Json::array();
  part.rest = std::move(json);
  return part;
}

}  // namespace

Result<std::string> merge_shards(const std::vector<ShardText>& shards) {
  std::vector<std::optional<Part>> parts;
  std::vector<std::string> paths;
  for (const ShardText& shard : shards) {
    Result<Part> read = read_part(shard);
    if (!read.ok()) return read.error();
    Part part = std::move(read).value();
    parts.resize(parts.empty() ? part.count : parts.size());
    paths.resize(parts.size());
    if (part.count != parts.size())
      return error_in_file(shard.path, fmt::format("is one of {} parts, and those before are of {}",
                                                   part.count, parts.size()));
    if (parts[part.index - 1])
      return error_in_file(shard.path, fmt::format("is part {}, as {} is", part.index,
                                                   spillway::quoted(paths[part.index - 1])));
    paths[part.index - 1] = shard.path;
    parts[part.index - 1] = std::move(part);
  }
  std::size_t most = 0;
  const Part* first = nullptr;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (!parts[k])
      return usage_error(fmt::format("part {} of {} is missing", k + 1, parts.size()),
                         "name the files of all parts");
    if (first == nullptr) first = &*parts[k];
    if (parts[k]->rest != first->rest)
      return error_in_file(paths[k], "answers another question than " + spillway::quoted(paths[0]));
    most = std::max(most, parts[k]->cases.size());
  }
  Json whole = first->rest;
  Json& cases = whole[first->dealt];
  for (std::size_t row = 0; row < most; ++row)
    for (std::optional<Part>& part : parts)
      if (row < part->cases.size()) cases.push_back(std::move(part->cases[row]));
  return whole.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
