#include "gossamer/base/cluster_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

TEST(ClusterFile, ReadsHostsInTheirOrder) {
  const ClusterFile file = parse_cluster(R"(
[[hosts]]
count = 2
workers = 3
link_rate = "20Mbit/s"
link_latency = "200us"
inside_rate = "10GB/s"
inside_latency = "2us"
device_rate = "24GB/s"
device_latency = "10us"
[[hosts]]
speed = 0.5
)",
                                         "cluster.toml");
  EXPECT_EQ(file.cluster.shape().workers_per_host, (std::vector{3, 3, 1}));
  EXPECT_EQ(file.speeds, (std::vector<double>{1, 1, 1, 1, 1, 1, 0.5}));
  const HostSpec& second = file.cluster.hosts[1];
  EXPECT_EQ(second.link.rate_bytes_per_s, 2.5e6);
  EXPECT_DOUBLE_EQ(second.link.latency_s, 200e-6);
  EXPECT_EQ(second.inside.rate_bytes_per_s, 10e9);
  EXPECT_DOUBLE_EQ(second.inside.latency_s, 2e-6);
  EXPECT_EQ(second.device.rate_bytes_per_s, 24e9);
  EXPECT_DOUBLE_EQ(second.device.latency_s, 10e-6);
  EXPECT_EQ(second.host_rate_bytes_per_s, kUsualHostRate);
  EXPECT_FALSE(is_limited(second.device_inside));
  EXPECT_FALSE(is_limited(file.cluster.hosts[2].device));
  EXPECT_TRUE(std::isinf(file.cluster.hosts[2].host_rate_bytes_per_s));
  EXPECT_TRUE(std::isinf(file.cluster.hosts[2].link.rate_bytes_per_s));
}

TEST(ClusterFile, KeepsWhatAHostsThreadsAndDevicesCanDo) {
  const std::string text =
      "[[hosts]]\ncount = 2\nworkers = 8\ndevice_rate = \"200 Gbit/s\"\n"
      "device_inside_rate = \"2.4 Tbit/s\"\nhost_rate = \"8 Gbit/s\"\n";
  const ClusterFile file = parse_cluster(text, "c.toml");
  EXPECT_EQ(file.cluster.hosts[1].device_inside.rate_bytes_per_s, 300e9);
  EXPECT_EQ(file.cluster.hosts[1].host_rate_bytes_per_s, 1e9);
  EXPECT_EQ(to_toml(file), text);
  ClusterFile free = file;
  for (HostSpec& host : free.cluster.hosts) {
    host.host_rate_bytes_per_s = std::numeric_limits<double>::infinity();
  }
  const HostSpec read = parse_cluster(to_toml(free), "c.toml").cluster.hosts[0];
  EXPECT_TRUE(std::isinf(read.host_rate_bytes_per_s));
}

TEST(ClusterFile, ComplaintsNameLineAndColumn) {
  const auto message_of = [](std::string_view text) -> std::string {
    try {
      parse_cluster(text, "c.toml");
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "[c.toml:1:1] a required key is missing; add 'hosts'"},
      {"hosts = 4", "[c.toml:1:9] 'hosts' must be"},
      {"hosts = []", "[cluster] a cluster needs at least one host"},
      {"[[hosts]]\nworker = 2", "[c.toml:2:1] unknown key, got 'worker'"},
      {"[[hosts]]\nworkers = 0", "[c.toml:2:11] 'workers' must be from 1 to 65536, got 0"},
      {"[[hosts]]\ncount = 70000", "[c.toml:2:9] 'count' must be from 1 to 65536, got 70000"},
      {"[[hosts]]\ncount = 300\nworkers = 300", "[c.toml:2:9] 'count' must be so small"},
      {"[[hosts]]\nlink_rate = \"0Mbit/s\"", "[c.toml:2:13] 'link_rate' must be positive"},
      {"[[hosts]]\nlink_rate = \"-1Mbit/s\"", "[c.toml:2:13]"},
      {"[[hosts]]\nlink_rate = \"20Mb/s\"", "[c.toml:2:13] unknown unit"},
      {"[[hosts]]\nlink_latency = \"500h\"", "[c.toml:2:16] 'link_latency' must be at most"},
      {"[[hosts]]\nspeed = 0", "[c.toml:2:9] 'speed' must be between"},
      {"[[hosts]]\nspeed = nan", "[c.toml:2:9] 'speed' must be between"},
      {"[[hosts]\n", "[c.toml:1:"},
  };
  for (const auto& [text, beginning] : cases) {
    EXPECT_TRUE(message_of(text).starts_with(beginning)) << text << "\n" << message_of(text);
  }
}

TEST(ClusterFile, WhatIsWrittenReadsBackEqual) {
  Rng rng(3);
  for (int k = 0; k < 200; ++k) {
    ClusterFile file;
    const auto hosts = 1 + static_cast<int>(rng.below(4));
    for (int h = 0; h < hosts; ++h) {
      HostSpec host{.workers = 1 + static_cast<int>(rng.below(3)), .link = {}, .inside = {}};
      if (rng.below(2) == 0) host.link.rate_bytes_per_s = 1 + 1e9 * rng.uniform();
      if (rng.below(2) == 0) host.inside = {2.5e6, 50e-6 * rng.uniform()};
      file.cluster.hosts.push_back(host);
      const double speed = rng.below(2) == 0 ? 1 : 0.1 + rng.uniform();
      file.speeds.insert(file.speeds.end(), static_cast<std::size_t>(host.workers), speed);
    }
    const std::string text = to_toml(file);
    const ClusterFile again = parse_cluster(text, "again");
    EXPECT_EQ(again.speeds, file.speeds) << text;
    EXPECT_EQ(to_toml(again), text);
    for (std::size_t h = 0; h < file.cluster.hosts.size(); ++h) {
      const LinkSpec& link = file.cluster.hosts[h].link;
      EXPECT_EQ(again.cluster.hosts[h].link.rate_bytes_per_s, link.rate_bytes_per_s) << text;
      EXPECT_EQ(again.cluster.hosts[h].inside.latency_s, file.cluster.hosts[h].inside.latency_s);
    }
  }
}

}  // namespace
}  // namespace gossamer
