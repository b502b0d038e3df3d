// What happened during a run, one thing after another, with repeated iterations written out.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/listener.h"

namespace spillway {

/// How fast bytes cross at a moment.
struct Rates {
  BytesPerSecond device_to_host, host_to_device, hbm;
  friend bool operator==(const Rates&, const Rates&) = default;
};

struct Happening {
  enum class Kind : std::uint8_t {
    kTaken,      ///< the main stream took the step
    kFinished,   ///< the step's task, which ran since `from`
    kWaited,     ///< the main stream was blocked at the step since `from`
    kIteration,  ///< number `number` of the loop began
    kRates,      ///< Chronicle::rates[number] from now on
    kLeftOut,    ///< since `from`, `number` iterations of the loop like those before
  };
  Kind kind = Kind::kTaken;
  engine::StepId step;
  SimTime from, at;
  std::int64_t number = 0;
};

struct Chronicle {
  std::vector<Happening> happenings;  ///< in order
  std::vector<Rates> rates;
};

/// Which resources the rates are those of.
struct RateResources {
  engine::ResourceId device_to_host, host_to_device, hbm;
};

/// Writes a chronicle while the engine runs. Iterations that a loop repeats are written out as long
/// as there are at most `most` happenings in all; else all but the last period of them are left
/// out, and it says so.
class ChronicleWriter : public engine::Listener {
 public:
  ChronicleWriter(const engine::EngineProgram& program, const RateResources& resources,
                  std::size_t most);

  Chronicle take() { return std::move(chronicle_); }

  void on_task_finished(const engine::TaskFinished& finished) override;
  void on_waited(const engine::Waited& waited) override;
  void on_step_taken(engine::StepId step, SimTime at) override;
  void on_rates_changed(SimTime at, std::span<const engine::RunningTask> running) override;
  void on_iteration_began(engine::StepId loop, SimTime at) override;
  void on_repeated(const engine::Repeated& repeated) override;

 private:
  /// What each task moves a second at full speed.
  IdVector<engine::TaskId, Rates> full_speed_;
  IdVector<engine::StepId, std::int64_t> next_iteration_;  ///< of loops
  const engine::EngineProgram& program_;
  std::size_t most_;
  Chronicle chronicle_;
};

}  // namespace spillway
