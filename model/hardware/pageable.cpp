#include "model/hardware/pageable.h"

#include <algorithm>

namespace spillway {

HardwareProfile with_pageable_copies(HardwareProfile profile, BytesPerSecond rate) {
  HostLink& link = profile.link;
  const Origin stated{OriginKind::kInferred, "as stated for pageable copies"};
  for (Figure<BytesPerSecond>* figure :
       {&link.host_to_device, &link.device_to_host, &link.both_directions})
    *figure = {std::min(figure->value, rate), stated};
  link.host_to_device_beside.reset();
  return profile;
}

}  // namespace spillway
