// A capacity report whose figures fit in the head: one model on two machines.
//
//   left of 100 B and tokens/s          batch 1        2          4
//   big    4 devices                   50, 800   30, 1200    -10
//          8                           70, 1600  50, 2400   30, 4000
//   small  4                           -20       -60        -90
//          8                           10, 800   -40        -80        offloads
#pragma once

#include "sim/capacity/capacity.h"

namespace spillway::testing {

inline CapacityCell toy_cell(const std::string& machine, std::int64_t devices, double batch,
                             double tokens_per_second, std::int64_t left) {
  CapacityCell cell;
  cell.key = {"m", machine, devices, batch, 100};
  cell.fits = left >= 0;
  cell.pool = cell.host = Bytes(100);
  cell.step.device = Bytes(100 - left);
  cell.step.host = Bytes(machine == "small" ? 7 : 0);
  cell.policy = machine == "small" ? "minimal_offloaded" : "full";
  cell.tokens_per_second = tokens_per_second;
  const double tokens = 100 * batch * static_cast<double>(devices);
  cell.step.step = Seconds(tokens_per_second > 0 ? tokens / tokens_per_second : 1);
  cell.step_with_room = cell.step.step;
  cell.mfu = 0.5;
  cell.binds = cell.fits ? "compute" : "HBM capacity";
  return cell;
}

inline CapacityReport toy_capacity() {
  CapacityReport report;
  report.machines = {
      {"big", "A big one", Bytes(200), FlopsPerSecond(2e12), "nvlink-c2c", BytesPerSecond(200e9),
       72},
      {"small", "A small one", Bytes(200), FlopsPerSecond(1e12), "pcie", BytesPerSecond(50e9), 8}};
  report.cells = {toy_cell("big", 4, 1, 800, 50),  toy_cell("big", 4, 2, 1200, 30),
                  toy_cell("big", 4, 4, 0, -10),   toy_cell("big", 8, 1, 1600, 70),
                  toy_cell("big", 8, 2, 2400, 50), toy_cell("big", 8, 4, 4000, 30),
                  toy_cell("small", 4, 1, 0, -20), toy_cell("small", 4, 2, 0, -60),
                  toy_cell("small", 4, 4, 0, -90), toy_cell("small", 8, 1, 800, 10),
                  toy_cell("small", 8, 2, 0, -40), toy_cell("small", 8, 4, 0, -80)};
  report.assumptions = {"m: everything is small", "a & b < c"};
  return report;
}

}  // namespace spillway::testing
