# Finds SentencePiece (libsentencepiece-dev), which has no CMake file of its own, and defines
# gossamer_sentencepiece.
find_path(GOSSAMER_SENTENCEPIECE_INCLUDE sentencepiece_trainer.h)
find_library(GOSSAMER_SENTENCEPIECE sentencepiece)
find_library(GOSSAMER_SENTENCEPIECE_TRAIN sentencepiece_train)
if(NOT GOSSAMER_SENTENCEPIECE_INCLUDE OR NOT GOSSAMER_SENTENCEPIECE OR
   NOT GOSSAMER_SENTENCEPIECE_TRAIN)
  message(FATAL_ERROR "[cmake] SentencePiece is missing; install libsentencepiece-dev, or build "
                      "without torch with -DGOSSAMER_TORCH=OFF")
endif()
add_library(gossamer_sentencepiece INTERFACE)
target_include_directories(gossamer_sentencepiece SYSTEM INTERFACE
  ${GOSSAMER_SENTENCEPIECE_INCLUDE})
# The Python module is made of the same layer and calls none of it.
target_link_libraries(gossamer_sentencepiece INTERFACE
  -Wl,--push-state,--as-needed ${GOSSAMER_SENTENCEPIECE} ${GOSSAMER_SENTENCEPIECE_TRAIN}
  -Wl,--pop-state)
