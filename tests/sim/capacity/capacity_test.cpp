#include "sim/capacity/capacity.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "model/hardware/find_profile.h"
#include "model/hardware/yaml_document.h"
#include "model/spec/read_maxtext.h"
#include "model/spec/remat_policy.h"
#include "sim/capacity/capacity_policies.h"
#include "tests/golden.h"

namespace spillway {
namespace {

const std::string kRun = "per_device_batch_size: 1\nmax_target_length: 4096\n";

HardwareProfile machine(const std::string& id) {
  return find_profile(id, {{testing::source_path("hw_profiles")}}).value();
}

CapacityRequest::Model model(const std::string& label, const std::string& keys) {
  return {label, [keys](std::int64_t devices) {
            return read_maxtext(parse_yaml(keys, "run.yml").value(), devices);
          }};
}

CapacityRequest llama_on(const std::vector<std::string>& machines) {
  CapacityRequest request;
  request.models = {model("llama", "model_name: llama3.1-8b\n" + kRun)};
  for (const std::string& id : machines) request.machines.push_back(machine(id));
  request.devices = {8};
  return request;
}

CapacityReport estimate(const CapacityRequest& request, const CapacityRun& run = {}) {
  auto report = estimate_capacity(request, run);
  REQUIRE(report.ok());
  return std::move(report).value();
}

/// Everything a cell says, to compare.
std::string describe(const CapacityCell& cell) {
  std::string text = cell.key.model + " " + cell.key.machine + " " +
                     std::to_string(cell.key.devices) + " " + std::to_string(cell.key.batch) + " " +
                     std::to_string(cell.key.sequence) + " " + cell.impossible + " " +
                     (cell.fits ? "fits " : "misses ") + cell.policy + " " + cell.binds;
  for (const double value : {static_cast<double>(cell.step.device.value()), cell.step.step.value(),
                             cell.tokens_per_second, cell.mfu, cell.step_with_room.value()})
    text += " " + std::to_string(value);
  return text;
}

TEST_CASE("cells stand in the order of the request, whoever makes them") {
  CapacityRequest request = llama_on({"gb200", "h100"});
  request.models.push_back(model("gemma", "model_name: gemma-2b\n" + kRun));
  request.devices = {8, 16, 64};
  request.batches = {1, 2, 4, 8, 16, 32};
  request.sequences = {2048, 4096, 8192, 16384};
  const CapacityReport report = estimate(request, {.threads = 1});
  REQUIRE(report.cells.size() == count_cells(request));
  REQUIRE(report.cells.size() == 2 * 2 * 3 * 6 * 4);
  std::size_t at = 0;
  for (const CapacityRequest::Model& m : request.models)
    for (const HardwareProfile& hardware : request.machines)
      for (const std::int64_t devices : request.devices)
        for (const double batch : request.batches)
          for (const std::int64_t sequence : request.sequences)
            CHECK(report.cells[at++].key ==
                  CapacityKey{m.label, hardware.id, devices, batch, sequence});

  for (const std::size_t threads : {2, 7}) {
    const CapacityReport again = estimate(request, {.threads = threads});
    REQUIRE(again.cells.size() == report.cells.size());
    for (std::size_t c = 0; c < again.cells.size(); ++c)
      CHECK(describe(again.cells[c]) == describe(report.cells[c]));
    CHECK(again.assumptions == report.assumptions);
  }
  // Every third cell, as a part of a sharded run.
  const CapacityReport part = estimate(request, {.owns = [](std::size_t k) { return k % 3 == 1; }});
  REQUIRE(part.cells.size() == report.cells.size() / 3);
  for (std::size_t c = 0; c < part.cells.size(); ++c)
    CHECK(describe(part.cells[c]) == describe(report.cells[3 * c + 1]));
  CHECK(part.assumptions == report.assumptions);
}

TEST_CASE("a cell has the fastest policy that fits, as asking for each alone finds") {
  CapacityRequest request = llama_on({"gb200", "h100", "rtxpro6000"});
  request.batches = {1, 2, 4, 8, 16};
  request.sequences = {8192};
  request.may_offload_state = true;
  const CapacityReport all = estimate(request);
  std::vector<CapacityReport> alone;
  const StepSpec step = request.models[0].read(8).value();
  for (const CapacityPolicy& policy : list_capacity_policies(step, {}, false)) {
    CapacityRequest one = request;
    one.policies = {policy.label};
    alone.push_back(estimate(one));
  }
  REQUIRE(alone.size() >= 8);
  bool some_fit = false, some_miss = false;
  for (std::size_t c = 0; c < all.cells.size(); ++c) {
    const CapacityCell& cell = all.cells[c];
    CAPTURE(describe(cell));
    some_fit |= cell.fits;
    some_miss |= !cell.fits;
    bool is_among = false;
    for (const CapacityReport& one : alone) {
      const CapacityCell& other = one.cells[c];
      CAPTURE(describe(other));
      CHECK(cell.fits >= other.fits);
      if (other.fits) CHECK(cell.step.step <= other.step.step);
      CHECK(cell.step_with_room <= other.step.step);
      is_among |= other.policy == cell.policy && other.step.step == cell.step.step;
    }
    CHECK(is_among);
    CHECK(cell.fits == (cell.hbm_headroom() >= Bytes(0) && cell.host_headroom() >= Bytes(0)));
    CHECK(cell.tokens_per_second ==
          doctest::Approx(8 * cell.key.batch * 8192 / cell.step.step.value()));
    const HardwareProfile& hardware = request.machines[c / request.batches.size()];
    CHECK(cell.mfu == doctest::Approx(cell.step.model_flops.value() / cell.step.step.value() /
                                      hardware.device.matrix_peak.at("bf16").value.value()));
  }
  CHECK(some_fit);
  CHECK(some_miss);
}

TEST_CASE("what does not fit says what it is short of") {
  CapacityRequest request = llama_on({"h100"});
  request.batches = {64};
  request.budget.host_limit = Bytes(1 << 20);
  const CapacityReport hbm = estimate(request);
  CHECK_FALSE(hbm.cells[0].fits);
  CHECK(hbm.cells[0].binds == "HBM capacity");
  CHECK(hbm.cells[0].hbm_headroom() < Bytes(0));
  request.batches = {1};
  request.policies = {"minimal_offloaded"};
  const CapacityReport host = estimate(request);
  CHECK_FALSE(host.cells[0].fits);
  CHECK(host.cells[0].binds == "host memory");
  CHECK(host.cells[0].host_headroom() < Bytes(0));
}

TEST_CASE("steps that there cannot be") {
  CapacityRequest request = llama_on({"gb200"});
  request.models = {model("split",
                          "model_name: llama3.1-8b\nici_tensor_parallelism: 2\n"
                          "ici_context_parallelism: 4\nici_fsdp_parallelism: -1\n" +
                              kRun)};
  request.devices = {4, 8, 16};
  request.batches = {0.25, 0.125, 0.3};
  request.sequences = {4096, 4098};
  const CapacityReport report = estimate(request);
  const auto reason = [&](std::int64_t devices, double batch, std::int64_t sequence) {
    const auto found = std::ranges::find(
        report.cells, CapacityKey{"split", "gb200", devices, batch, sequence}, &CapacityCell::key);
    REQUIRE(found != report.cells.end());
    return found->impossible;
  };
  CHECK(reason(4, 0.25, 4096) ==
        "the mesh has 8 devices, and 4 are asked for; the product of all ici_*_parallelism and "
        "dcn_*_parallelism is the number of devices");
  CHECK(reason(8, 0.25, 4096) == "");
  CHECK(reason(8, 0.125, 4096) == "");
  CHECK(reason(8, 0.3, 4096) ==
        "the batch comes to 2.4 sequences on a device, which is no whole number");
  CHECK(reason(8, 0.25, 4098) == "4098 tokens cannot be split over a context axis of 4");

  request.devices = {4};
  const auto none = estimate_capacity(request);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().text == "the mesh has 8 devices, and 4 are asked for");
}

TEST_CASE("questions that are none") {
  struct Row {
    const char* name;
    void (*change)(CapacityRequest&);
    const char* text;
  };
  const Row rows[] = {
      {"models", [](CapacityRequest& r) { r.models.clear(); }, "there is no model to ask about"},
      {"machines", [](CapacityRequest& r) { r.machines.clear(); },
       "there is no machine to ask about"},
      {"devices", [](CapacityRequest& r) { r.devices.clear(); },
       "there is no number of devices to ask about"},
      {"policy", [](CapacityRequest& r) { r.policies = {"most"}; },
       "there is no remat_policy 'most'"},
      {"budget", [](CapacityRequest& r) { r.budget.hbm_limit = Bytes(std::int64_t{1} << 40); },
       "--hbm-limit 1.00 TiB is above the HBM of gb200, 184.31 GiB"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CapacityRequest request = llama_on({"gb200"});
    row.change(request);
    const auto report = estimate_capacity(request);
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().kind == ErrorKind::kUsage);
    CHECK(report.error().text == row.text);
  }
}

TEST_CASE("policies that do the same to a model are one; state may lie in four places") {
  const auto labels = [](const std::string& keys, const std::vector<std::string>& names,
                         bool may_offload_state) {
    const StepSpec step = read_maxtext(parse_yaml(keys, "run.yml").value(), 8).value();
    std::vector<std::string> found;
    for (const CapacityPolicy& policy : list_capacity_policies(step, names, may_offload_state))
      found.push_back(policy.label);
    return found;
  };
  const std::string llama = "model_name: llama3.1-8b\n" + kRun;
  using Labels = std::vector<std::string>;
  CHECK(labels(llama, {"minimal", "minimal_with_quantization", "full"}, false) ==
        Labels{"minimal", "full"});
  CHECK(labels(llama, {"configured", "full"}, false) == Labels{"configured"});
  CHECK(labels(llama + "remat_policy: custom\nmlpwi_0: offload\n", {"full", "configured"}, false) ==
        Labels{"full", "configured"});
  CHECK(labels(llama, {"full"}, true) == Labels{"full", "full, optimizer on the host",
                                                "full, parameters on the host",
                                                "full, optimizer and parameters on the host"});
  CHECK(labels(llama + "optimizer_memory_host_offload: true\n", {"full"}, true) ==
        Labels{"full", "full, parameters on the host"});
  // Every preset does something; those that differ in names the model lacks are left out.
  const Labels all = labels(llama, {}, false);
  CHECK(all.front() == "full");
  CHECK(std::ranges::find(all, "minimal_offloaded") != all.end());
  CHECK(std::ranges::find(all, "minimal_flash") == all.end());
  CHECK(all.size() == 9);
}

}  // namespace
}  // namespace spillway
