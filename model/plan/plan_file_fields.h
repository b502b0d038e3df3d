// The fields of a plan file in their order, written down once: whoever reads or writes one visits
// them, so that the two cannot disagree about what there is.
#pragma once

#include "model/plan/plan_file.h"

namespace spillway {

template <typename Items, typename Visitor>
void visit_items(std::string_view key, Items& items, Visitor& visit) {
  visit.list(key, items, [](auto& item, auto& at) {
    at.field("name", item.name);
    at.field("shape", item.shape);
    at.field("origin", item.origin);
    at.field("bytes", item.bytes);
    at.field("count", item.count);
  });
}

template <typename Times, typename Visitor>
void visit_times(Times& times, Visitor& visit) {
  visit.field("step_seconds", times.step);
  visit.field("kernel_seconds", times.kernels);
  visit.field("exposed_d2h_seconds", times.exposed_offloads);
  visit.field("exposed_h2d_seconds", times.exposed_reloads);
  visit.field("exposed_collective_seconds", times.exposed_collectives);
  visit.field("exposed_slice_seconds", times.exposed_slices);
  visit.field("idle_seconds", times.idle);
}

template <typename Totals, typename Visitor>
void visit_totals(Totals& totals, Visitor& visit) {
  visit.field("total_device_bytes", totals.total_device);
  visit.field("argument_bytes", totals.argument);
  visit.field("output_bytes", totals.output);
  visit.field("alias_bytes", totals.alias);
  visit.field("temp_bytes", totals.temp);
  visit.field("host_argument_bytes", totals.host_argument);
  visit.field("host_output_bytes", totals.host_output);
  visit.field("host_alias_bytes", totals.host_alias);
  visit.field("host_temp_bytes", totals.host_temp);
  visit.field("largest_allocation_bytes", totals.largest_allocation);
  visit.field("no_fragmentation_bytes", totals.no_fragmentation);
}

template <typename Figures, typename Visitor>
void visit_figures(Figures& figures, Visitor& visit) {
  visit_times(figures.times, visit);
  visit_totals(figures.memory, visit);
  visit.field("d2h_bytes_per_step", figures.offloaded);
  visit.field("h2d_bytes_per_step", figures.reloaded);
  visit.field("dot_flops_per_step", figures.dot_flops);
  visit.field("live_peak_bytes", figures.live_peak);
  visit.field("peak_phase", figures.peak_phase);
  visit.field("peak_instruction", figures.peak_instruction);
  visit.field("remat_clones", figures.remat_clones);
  visit_items("live_at_peak", figures.buffers, visit);
  visit_items("host_arrays", figures.host_arrays, visit);
  visit_items("offloads", figures.offloads, visit);
  visit_items("reloads", figures.reloads, visit);
  visit_items("clones", figures.clones, visit);
}

/// Everything but the schema, which comes first.
template <typename Plan, typename Visitor>
void visit_plan_file(Plan& plan, Visitor& visit) {
  visit.section("program", [&] {
    visit.field("name", plan.program.name);
    visit.field("fingerprint", plan.program.fingerprint);
    visit.field("instructions", plan.program.instructions);
    visit.field("devices", plan.program.devices);
    visit.field("argument_bytes", plan.program.arguments);
  });
  visit.field("hardware", plan.hardware);
  visit.optional_field("topology", plan.topology);
  visit.optional_field("jaxlib", plan.jaxlib);
  visit.optional_field("pageable_copies_bytes_per_second", plan.pageable_copies);
  visit.optional_field("anchored_on", plan.anchored_on);
  visit.section("budget", [&] {
    visit.field("hbm_bytes", plan.budget.hbm);
    visit.field("pool_bytes", plan.budget.pool);
    visit.field("reserve_bytes", plan.budget.reserve);
    visit.field("host_bytes", plan.budget.host);
    visit.optional_field("usable_bytes", plan.budget.usable);
    visit.optional_field("block_bytes", plan.budget.block);
  });
  visit.field("fits", plan.fits);
  visit.map("policy", plan.policy);
  visit.list("residuals", plan.residuals, [](auto& residual, auto& at) {
    at.names("names", residual.names);
    at.field("shape", residual.shape);
    at.field("layers", residual.layers);
    at.field("bytes", residual.bytes);
    at.field("choice", residual.choice);
  });
  visit.list("state", plan.state, [](auto& state, auto& at) {
    at.field("class", state.kind);
    at.field("bytes", state.bytes);
    at.field("host_bytes", state.on_host);
  });
  visit.section("predicted", [&] { visit_figures(plan.predicted, visit); });
  visit.map("flags", plan.flags);
  visit.map("recommended_flags", plan.recommended_flags);
  visit.map("environment", plan.environment);
  visit.map("maxtext", plan.maxtext);
  visit.field("jax_policy", plan.jax_policy);
  visit.field("jax_state", plan.jax_state);
}

}  // namespace spillway
