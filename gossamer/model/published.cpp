#include "gossamer/model/published.h"

namespace gossamer {
namespace {

constexpr PosterRow kPoster[] = {
    {"en-de", "A40, 25 Gbit/s Ethernet", 4, 4, "complete", 5.80, 0.2203},
    {"en-de", "A40, 25 Gbit/s Ethernet", 4, 4, "ring", 3.76, 0.4935},
    {"en-de", "A40, 25 Gbit/s Ethernet", 4, 4, "alternating_exponential_ring", 2.90, 0.6105},
    {"en-fr", "A100, 100 Gbit/s InfiniBand", 2, 4, "complete", 11.45, 0.1061},
    {"en-fr", "A100, 100 Gbit/s InfiniBand", 2, 4, "ring", 10.92, 0.1482},
    {"en-fr", "A100, 100 Gbit/s InfiniBand", 2, 4, "alternating_exponential_ring", 10.89, 0.1501},
    {"resnet-50", "T4, 100 Gbit/s InfiniBand", 4, 8, "complete", 9.80, 0.0541},
    {"resnet-50", "T4, 100 Gbit/s InfiniBand", 4, 8, "alternating_exponential_ring", 9.70, 0.0646},
};

constexpr RuntimePoint kRuntime[] = {
    {"A40, 25 Gbit/s Ethernet", 2, 4, 166.1, 122.0},
    {"A40, 25 Gbit/s Ethernet", 4, 4, 195.5, 78.9},
    {"A40, 25 Gbit/s Ethernet", 8, 4, 188.5, 67.9},
    {"A100, 100 Gbit/s InfiniBand", 2, 4, 73.0, 61.7},
    {"A100, 100 Gbit/s InfiniBand", 4, 4, 54.8, 45.8},
    {"A100, 100 Gbit/s InfiniBand", 8, 4, 51.5, 43.7},
    {"T4, 100 Gbit/s InfiniBand", 2, 8, 372.5, 312.3},
    {"T4, 100 Gbit/s InfiniBand", 4, 8, 225.5, 178.8},
    {"T4, 100 Gbit/s InfiniBand", 8, 8, 167.3, 122.2},
};

constexpr CommunicationPoint kCommunication[] = {
    {"resnet-50", 25.5, 278, 150},
    {"bert", 300, 1469, 567},
};

constexpr ImageNetPoint kImageNet[] = {
    {"allreduce", 4, 11.6, 76.32},
    {"allreduce", 8, 6.3, 76.47},
    {"allreduce", 16, 3.7, 76.46},
    {"allreduce", 32, 2.2, 76.25},
    {"ring", 4, 11.6, 76.16},
    {"ring", 8, 6.5, 76.14},
    {"ring", 16, 3.3, 76.16},
    {"ring", 32, 1.8, 75.62},
    {"one_peer_exponential", 4, 11.1, 76.34},
    {"one_peer_exponential", 8, 5.7, 76.52},
    {"one_peer_exponential", 16, 2.8, 76.47},
    {"one_peer_exponential", 32, 1.5, 76.27},
};

}  // namespace

std::span<const PosterRow> poster_rows() { return kPoster; }
std::span<const RuntimePoint> runtime_points() { return kRuntime; }
std::span<const CommunicationPoint> communication_points() { return kCommunication; }
std::span<const ImageNetPoint> imagenet_points() { return kImageNet; }

}  // namespace gossamer
