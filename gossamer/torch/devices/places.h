#pragma once
/// Which device a worker's parameters are on.

#include <c10/core/Device.h>

#include <string>

namespace gossamer {

/// What a user's word means for a worker, by its place among those of its host: "cpu", "cuda" (one
/// device per worker, in turn), "cuda:1" and the like. Throws std::invalid_argument for a word that
/// torch does not know, and for a device that is not there.
c10::Device device_for(const std::string& word, int local_rank);

/// How many devices of that kind are here.
int count_devices(c10::DeviceType type);

}  // namespace gossamer
