#include "model/residuals/names.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/base/read_file.h"

namespace spillway {
namespace {

using nlohmann::json;

/// JAX's long names to HLO's short ones.
bool find_numpy_type(const std::string& name, ElementType& type) {
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"bfloat16", "bf16"},     {"float16", "f16"},
      {"float32", "f32"},       {"float64", "f64"},
      {"int32", "s32"},         {"int64", "s64"},
      {"int8", "s8"},           {"int16", "s16"},
      {"uint8", "u8"},          {"uint16", "u16"},
      {"uint32", "u32"},        {"uint64", "u64"},
      {"bool", "pred"},         {"float8_e4m3fn", "f8e4m3fn"},
      {"float8_e5m2", "f8e5m2"}};
  const auto row =
      std::ranges::find(kShort, name, &std::pair<std::string_view, std::string_view>::first);
  return find_element_type(row == std::end(kShort) ? std::string_view(name) : row->second, type);
}

/// Orders of more dimensions than this are too many to try.
constexpr std::size_t kMaxTransposedRank = 6;

/// Whether each dimension is a whole share of the global one, and the shares divide the devices.
bool is_share(const std::vector<std::int64_t>& global, const std::vector<std::int64_t>& local,
              std::int64_t devices) {
  if (local.size() != global.size()) return false;
  std::int64_t left = devices;  // each share takes a factor, so nothing overflows
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (local[i] == 0 || global[i] == 0 || global[i] % local[i] != 0) return false;
    const std::int64_t shares = global[i] / local[i];
    if (left % shares != 0) return false;
    left /= shares;
  }
  return true;
}

/// One entry of "names"; a message about what is wrong with it, or nothing.
std::string read_entry(const json& entry, CheckpointName& out) {
  if (!entry.is_object()) return "is not an object";
  if (!entry.contains("name") || !entry["name"].is_string()) return "has no name";
  out.name = entry["name"];
  if (std::ranges::any_of(out.name, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return "has a control character in its name";
  // These could not be set, or would be taken for something else, on a command line.
  if (out.name.empty() || out.name.find_first_of("=,") != std::string::npos)
    return "has an empty name, or one with '=' or ','";
  if (out.name == "optimizer" || out.name == "params")
    return "is called '" + out.name + "', as a class of state is";
  if (!entry.contains("shape") || !entry["shape"].is_array())
    return "'" + out.name + "' has no shape";
  for (const json& dim : entry["shape"]) {
    if (!dim.is_number_integer() || dim.get<std::int64_t>() < 0)
      return "'" + out.name + "' has a damaged shape";
    out.shape.push_back(dim);
  }
  if (!entry.contains("dtype") || !entry["dtype"].is_string() ||
      !find_numpy_type(entry["dtype"], out.type))
    return "'" + out.name + "' has no known dtype";
  if (entry.contains("layers")) {
    if (!entry["layers"].is_number_integer() || entry["layers"].get<std::int64_t>() < 1)
      return "'" + out.name + "' has damaged layers";
    out.layers = entry["layers"];
  }
  if (entry.contains("source") && entry["source"].is_string()) out.source = entry["source"];
  return "";
}

}  // namespace

Result<NameList> read_names(const std::string& path) {
  const auto text = read_file(path);
  if (!text.ok()) return text.error();
  json document;
  try {
    document = json::parse(**text);
  } catch (const json::parse_error& e) {
    Error error =
        error_in_file(path, "is not JSON", "the names sidecar is written by spillway.jax.names");
    const std::size_t at = std::min(e.byte > 0 ? e.byte - 1 : 0, (*text)->size());
    const std::string_view before = std::string_view(**text).substr(0, at);
    error.where.line = static_cast<std::uint32_t>(std::ranges::count(before, '\n') + 1);
    return error;
  } catch (const json::out_of_range&) {
    return error_in_file(path, "holds a number that is out of range");
  }
  if (!document.is_object() || !document.contains("names") || !document["names"].is_array())
    return error_in_file(path, "has no list 'names'",
                         "the names sidecar has schema spillway.names/1");
  if (!document.contains("schema") || document["schema"] != "spillway.names/1")
    return error_in_file(path, "is not of schema spillway.names/1");
  NameList list;
  if (document.contains("devices")) {
    const json& devices = document["devices"];
    if (!devices.is_number_integer() || devices.get<std::int64_t>() < 1)
      return error_in_file(path, "has damaged 'devices'", "a whole number from 1 on");
    list.devices = devices;
  }
  if (document.contains("jaxlib")) {
    const json& version = document["jaxlib"];
    if (version.is_string()) list.jaxlib = parse_jaxlib_version(version.get<std::string>());
    if (!list.jaxlib)
      return error_in_file(path, "has damaged 'jaxlib'", "a version as text, \"0.12.0.1\"");
  }
  for (const json& entry : document["names"]) {
    CheckpointName name;
    if (const std::string wrong = read_entry(entry, name); !wrong.empty())
      return error_in_file(path, "entry " + std::to_string(list.names.size()) + " " + wrong);
    list.names.push_back(std::move(name));
  }
  return list;
}

bool may_be_shard(const CheckpointName& name, Shape slice, std::int64_t layers,
                  std::int64_t devices) {
  if (name.type != slice.type() || layers < 1 || name.layers % layers != 0) return false;
  std::vector<std::int64_t> dims(slice.dims().begin(), slice.dims().end());
  // A slice of a stack keeps a leading 1 for the layer.
  while (dims.size() > name.shape.size() && dims.front() == 1) dims.erase(dims.begin());
  return is_share(name.shape, dims, devices);
}

bool may_be_transposed_shard(const CheckpointName& name, Shape slice, std::int64_t layers,
                             std::int64_t devices) {
  if (name.type != slice.type() || layers < 1 || name.layers % layers != 0) return false;
  std::vector<std::int64_t> dims(slice.dims().begin(), slice.dims().end());
  std::ranges::sort(dims);
  while (dims.size() > name.shape.size() && dims.front() == 1) dims.erase(dims.begin());
  if (dims.size() > kMaxTransposedRank) return false;
  do {
    if (is_share(name.shape, dims, devices)) return true;
  } while (std::ranges::next_permutation(dims).found);
  return false;
}

}  // namespace spillway
