#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/capacity/answers.h"
#include "sim/report/capacity_figures.h"
#include "sim/report/capacity_report.h"
#include "sim/report/capacity_sentences.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "spillway.capacity/1";

std::string dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

Json cell_json(const CapacityCell& cell) {
  Json json;
  const auto add = [&](const char* name, const auto& value) { json[name] = plain(value); };
  visit_key(cell, add);
  if (cell.is_possible())
    visit_estimate(cell, add);
  else
    json["impossible"] = cell.impossible;
  return json;
}

Json machine_json(const CapacityMachine& machine) {
  return {{"id", machine.id},
          {"name", machine.name},
          {"hbm_bytes", machine.hbm.value()},
          {"bf16_flops_per_second", machine.bf16_peak.value()},
          {"link", machine.link},
          {"link_to_device_bytes_per_second", machine.link_rate.value()},
          {"domain_gpus", machine.domain_gpus}};
}

Json need_json(const CapacityReport& report, const CapacityNeed& need) {
  const CapacityKey& key = report.cells[need.any].key;
  Json json{{"model", key.model},
            {"machine", key.machine},
            {"sequence_tokens", key.sequence},
            {"fewest_devices", nullptr}};
  if (!need.fewest) return json;
  const CapacityCell& cell = report.cells[*need.fewest];
  json["fewest_devices"] = cell.key.devices;
  json["batch_sequences_per_device"] = cell.key.batch;
  json["policy"] = cell.policy;
  json["tokens_per_second"] = cell.tokens_per_second;
  return json;
}

/// Sets fields of a cell from JSON; what is missing or of another kind is remembered.
class FieldReader {
 public:
  explicit FieldReader(const Json& json) : json_(json) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    const auto found = json_.find(name);
    if (found == json_.end()) {
      wrong_ = true;
    } else if constexpr (std::is_same_v<T, std::string>) {
      found->is_string() ? void(value = found->template get<std::string>()) : fail();
    } else if constexpr (std::is_same_v<T, bool>) {
      found->is_boolean() ? void(value = found->template get<bool>()) : fail();
    } else if constexpr (std::is_arithmetic_v<T>) {
      found->is_number() ? void(value = found->template get<T>()) : fail();
    } else {
      found->is_number() ? void(value = T(found->template get<typename T::rep>())) : fail();
    }
  }
  bool wrong() const { return wrong_; }

 private:
  void fail() { wrong_ = true; }

  const Json& json_;
  bool wrong_ = false;
};

bool read_cell(const Json& json, CapacityCell& cell) {
  if (!json.is_object()) return false;
  FieldReader read(json);
  const auto set = [&read](const char* name, auto& value) { read(name, value); };
  visit_key(cell, set);
  if (json.contains("impossible")) {
    set("impossible", cell.impossible);
    return !read.wrong();
  }
  visit_estimate(cell, set);
  return !read.wrong();
}

bool read_machine(const Json& json, CapacityMachine& machine) {
  if (!json.is_object()) return false;
  FieldReader read(json);
  read("id", machine.id);
  read("name", machine.name);
  read("hbm_bytes", machine.hbm);
  read("bf16_flops_per_second", machine.bf16_peak);
  read("link", machine.link);
  read("link_to_device_bytes_per_second", machine.link_rate);
  read("domain_gpus", machine.domain_gpus);
  return !read.wrong();
}

/// Reads each item of an array; false where there is none or an item is of another form.
template <typename Item, typename Read>
bool read_items(const Json& json, const char* name, std::vector<Item>& items, const Read& read) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return false;
  items.reserve(found->size());
  return std::ranges::all_of(*found,
                             [&](const Json& item) { return read(item, items.emplace_back()); });
}

}  // namespace

std::string render_json(const CapacityReport& report) {
  Json json{{"schema", kSchema}};
  if (report.shard)
    visit_label(*report.shard,
                [&json](const char* name, const auto& value) { json["shard"][name] = value; });
  json["machines"] = Json::array();
  for (const CapacityMachine& machine : report.machines)
    json["machines"].push_back(machine_json(machine));
  json["cells"] = Json::array();
  for (const CapacityCell& cell : report.cells) json["cells"].push_back(cell_json(cell));
  if (!report.shard) {
    json["needs"] = Json::array();
    for (const CapacityNeed& need : find_needs(report))
      json["needs"].push_back(need_json(report, need));
    json["answers"] = Json::array();
    for (const CapacityAnswer& answer : answer_questions(report))
      json["answers"].push_back({{"question", answer.question}, {"sentences", answer.sentences}});
  }
  json["assumptions"] = report.assumptions;
  return dump(json) + "\n";
}

bool is_capacity_json(std::string_view text) {
  constexpr std::size_t kBegin = 64;  // the schema is what an answer begins with
  return text.substr(0, kBegin).find(std::string("\"") + kSchema + '"') != std::string_view::npos;
}

Result<CapacityReport> read_capacity_json(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  CapacityReport report;
  const bool is_report = json.is_object() && json.contains("schema") && json["schema"] == kSchema &&
                         read_items(json, "machines", report.machines, read_machine) &&
                         read_items(json, "cells", report.cells, read_cell) &&
                         read_items(json, "assumptions", report.assumptions,
                                    [](const Json& item, std::string& sentence) {
                                      if (item.is_string()) sentence = item.get<std::string>();
                                      return item.is_string();
                                    });
  if (!is_report)
    return error_in_file(path, "is no answer of capacity", "make it with capacity --json");
  return report;
}

}  // namespace spillway
