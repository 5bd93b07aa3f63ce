#include "loadmon/senses/media.h"

#include <cppunit/extensions/HelperMacros.h>
#include <poll.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace sublet::loadmon {
namespace {
constexpr int64_t kSecond = 1'000'000'000;
}  // namespace

class MediaTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MediaTest);
  CPPUNIT_TEST(sound_is_looked_at_with_each_sample);
  CPPUNIT_TEST(new_cards_are_found);
  CPPUNIT_TEST(a_jobs_sound_does_not_count);
  CPPUNIT_TEST(hostile_texts);
  CPPUNIT_TEST(an_open_camera_counts_until_it_is_closed);
  CPPUNIT_TEST(a_camera_that_comes_and_goes);
  CPPUNIT_TEST(no_sound_and_no_camera);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    char name[] = "/tmp/sublet-media-XXXXXX";
    CPPUNIT_ASSERT(mkdtemp(name) != nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ + "/dev");
  }
  void tearDown() override { std::filesystem::remove_all(root_); }

  void sound_is_looked_at_with_each_sample() {
    status("card0/pcm0p/sub0", "closed\n");
    status("card1/pcm3c/sub0", "closed\n");
    Media sense = make();
    CPPUNIT_ASSERT(!attends(sense));
    status("card1/pcm3c/sub0", playing(77));  // a call records, too
    CPPUNIT_ASSERT(attends(sense));
    status("card1/pcm3c/sub0", "state: PREPARED\nowner_pid   : 77\n");
    CPPUNIT_ASSERT(!attends(sense));
  }

  void new_cards_are_found() {
    Media sense = make();
    CPPUNIT_ASSERT(!attends(sense));
    status("card5/pcm0p/sub3", playing(77));
    now_ += 11 * kSecond;
    CPPUNIT_ASSERT(attends(sense));
    std::filesystem::remove_all(root_ + "/proc");
    CPPUNIT_ASSERT(!attends(sense));
  }

  void a_jobs_sound_does_not_count() {
    jobs_ = {77};
    status("card0/pcm0p/sub0", playing(77));
    Media sense = make();
    CPPUNIT_ASSERT(!attends(sense));
    status("card0/pcm0p/sub1", playing(78));
    now_ += 11 * kSecond;
    CPPUNIT_ASSERT(attends(sense));
  }

  void hostile_texts() {
    status("card0/pcm0p/sub0", "");
    Media sense = make();
    for (const std::string& text :
         {std::string(), std::string("RUNNING"), std::string("state: RUN"),
          std::string(100'000, 'x'), std::string("\0\0\0", 3)}) {
      status("card0/pcm0p/sub0", text);
      CPPUNIT_ASSERT(!attends(sense));
    }
    // Nobody is named: it counts.
    for (const char* text : {"state: RUNNING", "state: RUNNING\nowner_pid", "state: RUNNING\n:"}) {
      status("card0/pcm0p/sub0", text);
      CPPUNIT_ASSERT(attends(sense));
    }
  }

  void an_open_camera_counts_until_it_is_closed() {
    write("dev/video0", "");
    Media sense = make();
    CPPUNIT_ASSERT(!notices(sense));
    {
      std::ifstream camera(root_ + "/dev/video0");
      CPPUNIT_ASSERT(ready(sense));
      CPPUNIT_ASSERT(notices(sense));
      std::ifstream again(root_ + "/dev/video0");
      again.close();
      CPPUNIT_ASSERT(notices(sense));
      CPPUNIT_ASSERT(attends(sense));
    }
    CPPUNIT_ASSERT(ready(sense));
    CPPUNIT_ASSERT(!notices(sense));
  }

  void a_camera_that_comes_and_goes() {
    Media sense = make();
    write("dev/video2", "");
    write("dev/other", "");
    CPPUNIT_ASSERT(!notices(sense));
    std::ifstream camera(root_ + "/dev/video2"), other(root_ + "/dev/other");
    CPPUNIT_ASSERT(notices(sense));
    camera.close();
    std::filesystem::remove(root_ + "/dev/video2");
    CPPUNIT_ASSERT(!notices(sense));
  }

  void no_sound_and_no_camera() {
    std::filesystem::remove(root_ + "/dev");
    Media sense = make();
    CPPUNIT_ASSERT(!attends(sense));
    CPPUNIT_ASSERT(!ready(sense));
  }

 private:
  Media make() {
    return Media(root_, [this](pid_t pid) { return jobs_.contains(pid); });
  }
  static std::string playing(pid_t pid) {
    return "state: RUNNING\nowner_pid   : " + std::to_string(pid) + "\ntrigger_time: 1.5\n";
  }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path, std::ios::trunc) << text;
  }
  void status(const std::string& stream, const std::string& text) {
    write("proc/asound/" + stream + "/status", text);
  }
  bool attends(Media& sense) {
    protocol::PresenceSample sample;
    CPPUNIT_ASSERT(sense.sample(now_ += kSecond, {}, &sample));
    return sample.attends;
  }
  bool notices(Media& sense) {
    protocol::PresenceSample sample;
    CPPUNIT_ASSERT(sense.notice(now_, &sample));
    return sample.attends;
  }
  static bool ready(const Media& sense) {
    pollfd event = {sense.handle(), POLLIN, 0};
    return poll(&event, 1, 0) > 0;
  }

  std::string root_;
  std::set<pid_t> jobs_;
  int64_t now_ = 1000 * kSecond;
};

CPPUNIT_TEST_SUITE_REGISTRATION(MediaTest);

}  // namespace sublet::loadmon
