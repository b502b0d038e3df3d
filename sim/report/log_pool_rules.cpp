#include <fmt/format.h>

#include "model/plan/budget.h"
#include "model/plan/host_pool.h"
#include "sim/report/log_rules.h"

namespace spillway::log_rules {
namespace {

using log::LineNumber;
using log::LoggedBytes;

/// A program below this finds room in any pool that is not full of other things.
constexpr Bytes kSmallProgram{std::int64_t{1} << 30};

/// What the request was for, when the statistics tell: ", all temporaries in one piece".
std::string purpose(const Case& c) {
  const auto same = [&](const std::optional<LoggedBytes>& bytes) {
    return bytes && bytes->value > Bytes(0) && may_be_equal(*bytes, c.evidence.request->bytes);
  };
  if (!c.evidence.stats) return "";
  if (same(c.evidence.stats->temp))
    return " (the program's temporaries, which XLA asks for in one contiguous block)";
  if (same(c.evidence.stats->maybe_live_out)) return " (the program's results)";
  return "";
}

std::string fraction_text(const Case& c) {
  if (!c.fraction) return "";
  const LogFraction& f = *c.fraction;
  if (f.smallest > 1)
    return fmt::format(" No fraction of the card ({}: {}) holds {}.", f.card_origin, text(f.card),
                       text(f.need));
  return fmt::format(
      " --mem-fraction {:.2f} (XLA_PYTHON_CLIENT_MEM_FRACTION) of the card's {} ({}) is the "
      "smallest that would hold {}{}.{}",
      f.smallest, text(f.card), f.card_origin, text(f.need),
      f.smallest_as_it_lay
          ? fmt::format(" by sum; the block needs one piece, and with everything lying as it lay "
                        "that takes {:.2f}{}",
                        *f.smallest_as_it_lay, *f.smallest_as_it_lay > 1 ? ", more than all" : "")
          : std::string(),
      f.smallest > 0.95 ? " That leaves little for the context and communication buffers." : "");
}

/// What XLA's host pool pins for a request when nothing larger came before.
Bytes pinned_region(Bytes request) {
  constexpr Bytes kNoLimit{std::int64_t{1} << 62};
  return pinned_by_growth(std::span(&request, 1), kNoLimit);
}

}  // namespace

std::vector<LineNumber> lines_of(std::initializer_list<LineNumber> lines) {
  std::vector<LineNumber> sorted;
  for (const LineNumber line : lines)
    if (line > 0) sorted.push_back(line);
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

/// The pool's state at the failure is known: short by sum, by block, or not let grow.
void pool_state(const Case& c, std::vector<LogFinding>& out) {
  if (!c.evidence.request || !c.evidence.dump) return;
  const log::PoolDump& dump = *c.evidence.dump;
  const Bytes request = c.evidence.request->bytes.value;
  const Bytes limit = dump.limit->value;
  const Bytes used = dump.in_use->value;
  const Bytes free = over(limit, used);
  const auto lines = lines_of({c.evidence.request->line, dump.line});
  const std::string what = text(request) + purpose(c);
  if (request > limit) {
    out.push_back({"larger-than-pool", true, lines,
                   fmt::format("One request of {}: larger than the whole pool of {}, whatever else "
                               "lies there.{}",
                               what, text(limit), fraction_text(c))});
    return;
  }
  if (request > free) {
    std::string message =
        fmt::format("One request of {}, where {} of the pool's {} were in use: {} too little.",
                    what, text(used), text(limit), text(request - free));
    if (c.evidence.stats && c.evidence.stats->parameter) {
      const Bytes own = c.evidence.stats->parameter->value +
                        c.evidence.stats->maybe_live_out.value_or(LoggedBytes{}).value;
      message += own >= used
                     ? " The program's own arguments and results can be all of what was in use."
                     : fmt::format(
                           " Arguments and results of the program explain at most {} of "
                           "what was in use; the other {} are outside it: arrays still "
                           "referenced, other programs.",
                           text(own), text(used - own));
    }
    out.push_back({"pool-full", true, lines, message + fraction_text(c)});
    return;
  }
  const bool grown = !dump.pool || over(limit, dump.pool->value) < request;
  if (!grown) {
    out.push_back({"growth-refused", true, lines,
                   fmt::format("One request of {}, although the pool has only {} of the {} it may "
                               "take: the driver gave no more. The rest of the card is with other "
                               "processes or with a second pool.",
                               what, text(*dump.pool), text(limit))});
    return;
  }
  const std::string piece =
      dump.largest_free && dump.largest_free->value < request
          ? fmt::format("the largest free piece has {}", text(*dump.largest_free))
          : std::string("no single free piece is that large");
  out.push_back({"fragmentation", true, lines,
                 fmt::format("One request of {}: {} are free by sum, but {}. A request needs one "
                             "piece; let the pool preallocate (growing in steps fragments it), or "
                             "free arrays before the program is loaded.",
                             what, text(free), piece)});
}

/// No dump: the program's own sum against the pool, as far as that is known.
void program_against_pool(const Case& c, std::vector<LogFinding>& out) {
  if (c.evidence.dump || !c.evidence.request) return;
  const Evidence& request = *c.evidence.request;
  const std::string what = text(request.bytes) + purpose(c);
  const auto& program = c.evidence.program;
  if (c.evidence.pool && request.bytes.value > c.evidence.pool->bytes.value) {
    out.push_back(
        {"larger-than-pool", true, lines_of({request.line, c.evidence.pool->line}),
         fmt::format("One request of {}: larger than the whole pool of {} ({}).{}", what,
                     text(c.evidence.pool->bytes), c.evidence.pool->origin, fraction_text(c))});
    return;
  }
  if (!program) {
    if (!purpose(c).empty() || !c.evidence.pool) {
      out.push_back({"request-alone", true, lines_of({request.line}),
                     fmt::format("One request of {} failed; one request is one contiguous piece, "
                                 "and the largest is mostly the whole block of temporaries. What "
                                 "the pool held is not in this text.",
                                 what)});
    }
    return;
  }
  const auto lines =
      lines_of({request.line, program->line, c.evidence.pool ? c.evidence.pool->line : 0});
  const Bytes need = program->bytes.value;
  if (c.evidence.pool ? need <= c.evidence.pool->bytes.value : need < kSmallProgram) {
    const std::string pool =
        c.evidence.pool
            ? fmt::format(" of {} ({})", text(c.evidence.pool->bytes), c.evidence.pool->origin)
            : "";
    out.push_back(
        {"outside-program", true, lines,
         fmt::format("The module needs {} in all, so it is innocent of a request of {} "
                     "that fails: the pool{} was already full. Look at what lives outside "
                     "it: arrays still referenced, other programs, other processes.",
                     text(need), what, pool)});
    return;
  }
  if (!c.evidence.pool) {
    out.push_back({"contiguous-block", true, lines,
                   fmt::format("One request of {} failed, of {} the program needs in all. Sum and "
                               "block must both fit what is free. The size of the pool is not in "
                               "this text: the log's first lines have it, or say --hw.",
                               what, text(need))});
  }
}

/// The program's sum is above the pool but maybe not above the card.
void above_the_pool(const Case& c, std::vector<LogFinding>& out) {
  if (!c.fraction || !c.evidence.program || !c.evidence.pool) return;
  const bool told = std::ranges::any_of(out, [](const LogFinding& f) {
    return f.code == "larger-than-pool" || f.code == "pool-full";
  });
  const Evidence& pool = *c.evidence.pool;
  if (told || c.fraction->need <= pool.bytes.value) return;
  const char* const where = c.fraction->smallest > 1 ? "not the card" : "the card but not the pool";
  out.push_back({"above-pool", true, lines_of({c.evidence.program->line, pool.line}),
                 fmt::format("The sum, {} ({}), fits {} of {} ({}).{}", text(c.fraction->need),
                             c.fraction->need_origin, where, text(pool.bytes), pool.origin,
                             fraction_text(c))});
}

void host_pool(const Case& c, std::vector<LogFinding>& out) {
  if (!c.evidence.host_request) return;
  const Bytes request = c.evidence.host_request->bytes.value;
  const auto setting =
      std::ranges::find(c.log.settings, "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB", &log::Setting::name);
  Bytes need = request;
  std::string held = "What the pool held is not in this text, so this is the least.";
  LineNumber state = 0;
  if (const log::PoolDump* dump = c.evidence.host_dump) {
    const LoggedBytes& taken = dump->pool ? *dump->pool : *dump->in_use;
    need += taken.value;
    state = dump->line;
    held = fmt::format("It had {} of its {} already.", text(taken), text(*dump->limit));
  } else if (c.evidence.host_program && c.evidence.host_program->bytes.value > request) {
    need = c.evidence.host_program->bytes.value;
    state = c.evidence.host_program->line;
    held = fmt::format("The program needs {} there in all.", text(need));
  }
  const bool stated = setting != c.log.settings.end();
  // Whatever the need is known to be, the limit there was did not do.
  const std::int64_t above =
      stated ? static_cast<std::int64_t>(std::clamp(setting->value, 0.0, 1e6)) + 1
             : host_pool_gib(kDefaultHostPool) + 1;
  out.push_back(
      {"host-limit", true, lines_of({c.evidence.host_request->line, state}),
       fmt::format(
           "This is pinned host memory, not HBM: a request of {} to a pool that each device has "
           "for "
           "itself, with {}. {} Set XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB={} or more, and check that "
           "the host has that much for every one of its GPUs. The pool grows by powers of two: {} "
           "in one piece pins {} unless the limit clips it.",
           text(request),
           stated ? fmt::format("the stated limit of {:g} GiB", setting->value)
                  : "a limit of 64 GiB by default (16 GiB when it preallocates)",
           held, std::max(host_pool_gib(need), above), text(request),
           text(pinned_region(request)))});
}

void refused_by_driver(const Case& c, std::vector<LogFinding>& out) {
  for (const log::OutOfMemory& failed : c.log.out_of_memory) {
    if (failed.where == log::FailedIn::kPinnedMemory) {
      out.push_back(
          {"pinning-refused", true, lines_of({failed.line}),
           fmt::format("The driver would not pin {} of host memory. Pinned memory cannot be "
                       "swapped and counts against the container's memory limit; on Windows and "
                       "WSL it is charged to the card, however much the host has free. The pool "
                       "then tries less, so this alone need not be fatal.",
                       text(failed.requested))});
      return;
    }
    if (failed.where != log::FailedIn::kDevice) continue;
    std::string state;
    LineNumber line = 0;
    if (!c.log.cuda_memory.empty()) {
      const log::CudaMemory& memory = c.log.cuda_memory.front();
      line = memory.line;
      state = fmt::format(" It reports {} free of {}.", text(memory.free), text(memory.total));
    }
    out.push_back(
        {"driver-refused", true, lines_of({failed.line, line}),
         fmt::format("The driver, not a pool, refused {}.{} With preallocation the pool "
                     "holds the rest of the card, and what libraries take beside it needs "
                     "a lower fraction; without it, other processes hold it.",
                     text(failed.requested), state)});
    return;
  }
}

void second_pool(const Case& c, std::vector<LogFinding>& out) {
  for (const log::FailedRequest& failed : c.log.failed_requests) {
    if (log::pool_kind(failed.allocator) != log::PoolKind::kCollective) continue;
    out.push_back(
        {"collective-pool", true, lines_of({failed.line}),
         fmt::format("{} failed in the second pool, that of collectives "
                     "(--xla_gpu_enable_nccl_user_buffers), however much the first has "
                     "free. It grows from nothing and fragments: preallocate it with "
                     "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB={} or more, and lower "
                     "XLA_PYTHON_CLIENT_MEM_FRACTION by as much.",
                     text(failed.requested), (failed.requested.value.value() >> 20) + 1)});
    return;
  }
  for (const log::PoolSize& size : c.log.pool_sizes) {
    if (size.kind != log::PoolKind::kCollective) continue;
    const auto main =
        std::ranges::find(c.log.pool_sizes, log::PoolKind::kDevice, &log::PoolSize::kind);
    if (main == c.log.pool_sizes.end()) return;
    out.push_back(
        {"two-pools", false, lines_of({size.line, main->line}),
         fmt::format("The card is shared by two pools: the program's budget is {}, and {} "
                     "are for collectives.",
                     text(main->bytes), text(size.bytes))});
    return;
  }
}

}  // namespace spillway::log_rules
