# The two ends of bench/transport/run.py that are not Python; UCX's only where UCX is installed.

add_executable(net_pair ${CMAKE_SOURCE_DIR}/bench/transport/net_pair.cpp)
target_link_libraries(net_pair PRIVATE gossamer_transport)
add_executable(hostile_peer ${CMAKE_SOURCE_DIR}/bench/faults/hostile_peer.cpp)
target_link_libraries(hostile_peer PRIVATE gossamer_transport)

find_path(gossamer_ucx_headers ucp/api/ucp.h NO_CACHE)
find_library(gossamer_ucx_library ucp NO_CACHE)
find_library(gossamer_ucs_library ucs NO_CACHE)
if(gossamer_ucx_headers AND gossamer_ucx_library AND gossamer_ucs_library)
  add_executable(ucx_pair ${CMAKE_SOURCE_DIR}/bench/transport/ucx_pair.cpp)
  target_include_directories(ucx_pair SYSTEM PRIVATE ${gossamer_ucx_headers})
  target_link_libraries(ucx_pair PRIVATE gossamer_options ${gossamer_ucx_library} ${gossamer_ucs_library})
endif()
