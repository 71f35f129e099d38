#pragma once
/// How a worker comes back, as Python holds it.

#include <torch/csrc/utils/pybind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/signals.h"
#include "bindings/transport_handle.h"
#include "gossamer/engine/arrival.h"

namespace gossamer::python {

class ArrivalHandle {
 public:
  ArrivalHandle(const std::shared_ptr<TransportHandle>& transport, std::vector<int> preferred,
                double timeout_s)
      : transport_(transport->get()),
        arrival_(*transport_, std::move(preferred), timeout_s, raise_signals) {}

  py::bytes take_state() {
    std::string state;
    {
      const py::gil_scoped_release no_gil;
      state = arrival_.take_state();
    }
    return state;
  }
  Arrival& get() { return arrival_; }

 private:
  const std::shared_ptr<Transport> transport_;
  Arrival arrival_;
};

}  // namespace gossamer::python
