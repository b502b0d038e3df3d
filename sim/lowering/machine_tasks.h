// What runs on one GPU and what it shares: the resources of the machine, and the engine's task of a
// kernel, a copy or a collective, with what it takes of each. Which resources, and why so:
// docs/simulation.md#resources
#pragma once

#include <vector>

#include "model/cost/cost.h"
#include "model/hardware/profile.h"
#include "model/program/host_transfer.h"
#include "sim/engine/program.h"

namespace spillway {

/// What tasks of a GPU share. Of what its CPU has, the GPU gets its part.
struct MachineResources {
  engine::ResourceId hbm;              ///< bytes, at the rate a streaming kernel reaches
  engine::ResourceId sms;              ///< time of all of them
  engine::ResourceId device_to_host;   ///< bytes over the link
  engine::ResourceId host_to_device;   ///< bytes over the link
  engine::ResourceId both_directions;  ///< bytes of either, two-sided
  engine::ResourceId host_read;        ///< bytes that the CPU's memory gives
  engine::ResourceId host_write;       ///< bytes that it takes
  engine::ResourceId host_memory;      ///< bytes of either, two-sided
  engine::ResourceId fabric;           ///< time of the GPU's links to others of its domain
  engine::ResourceId network;          ///< time of its NIC
};

/// Adds the resources of one GPU to an engine program, then tasks that use them.
class MachineTasks {
 public:
  /// `gpus_of_cpu` GPUs copy at the same time and share the memory of their CPU evenly.
  MachineTasks(engine::EngineProgram& program, const HardwareProfile& profile,
               std::int64_t gpus_of_cpu);

  const MachineResources& resources() const { return resources_; }

  /// A copy across the host link by a copy engine.
  engine::TaskId add_host_copy(TransferDirection direction, Bytes bytes);
  /// Everything else: kernels, collectives, copies within HBM.
  engine::TaskId add_device_task(const Cost& cost);

 private:
  using Demands = std::vector<engine::Demand>;

  engine::TaskId add_measured_task(const Cost& cost);
  void use_hbm(Demands& demands, const Cost& cost) const;
  void use_sms(Demands& demands, const Cost& cost) const;
  void use_host_link(Demands& demands, Bytes in, Bytes out) const;
  void use_fabric(Demands& demands, const Cost& cost) const;
  std::int32_t copy_weight(TransferDirection direction) const;

  engine::EngineProgram& program_;
  const HardwareProfile& profile_;
  MachineResources resources_;
  BytesPerSecond in_alone_, out_alone_;  ///< while nothing is copied the other way
};

}  // namespace spillway
