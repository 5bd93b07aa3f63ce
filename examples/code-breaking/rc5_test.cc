// Tests the cipher against published examples: Rivest's paper (keys of 16 bytes), RFC 2040
// section 9 (12 rounds), RSA's Secret-Key Challenge of 1997: its practice contests (CBC,
// keys of 5 to 8 bytes) and the two that distributed.net won in 1997 and 2002.
#include "examples/code-breaking/rc5.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <stdexcept>
#include <string>

namespace {
using namespace sublet::code_breaking;

Bytes text_bytes(const std::string& text) { return {text.begin(), text.end()}; }

class Rc5Test : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(Rc5Test);
  CPPUNIT_TEST(papers_examples);
  CPPUNIT_TEST(rfc_2040_examples);
  CPPUNIT_TEST(practice_contests);
  CPPUNIT_TEST(real_contests);
  CPPUNIT_TEST(decrypting_undoes_encrypting);
  CPPUNIT_TEST(key_lengths);
  CPPUNIT_TEST(hex_digits);
  CPPUNIT_TEST_SUITE_END();

 public:
  void papers_examples() {
    const char kZeros[] = "0000000000000000";
    expect("00000000000000000000000000000000", kZeros, kZeros, "21a5dbee154b8f6d");
    expect("915f4619be41b2516355a50110a9ce91", kZeros, "21a5dbee154b8f6d", "f7c013ac5b2b8952");
    expect("783348e75aeb0f2fd7b169bb8dc16787", kZeros, "f7c013ac5b2b8952", "2f42b3b70369fc92");
    expect("dc49db1375a5584f6485b413b5f12baf", kZeros, "2f42b3b70369fc92", "65c178b284d197cc");
    expect("5269f149d41ba0152497574d7f153125", kZeros, "65c178b284d197cc", "eb44e415da319824");
  }

  void rfc_2040_examples() {
    expect("00", "0102030405060708", "1020304050607080", "b2b3209db6594da4");
    expect("01020304", "0000000000000000", "ffffffffffffffff", "fc586f92f7080934");
    expect("0102030405", "0000000000000000", "ffffffffffffffff", "97e0787837ed317f");
    expect("0102030405060708", "0000000000000000", "ffffffffffffffff", "e493f1c1bb4d6e8c");
    expect("0102030405060708", "0102030405060708", "1020304050607080", "921f12485373b4f7");
    expect("01020304050607081020304050607080", "0102030405060708", "1020304050607080",
           "294ddb46b3278d60");
  }

  void practice_contests() {
    expect_contest("5", "27d86dd243", "f675171a59b7ead0",
                   "b40a5388b13882ad930da8b61e51a3b1ffaee1d814a5fa15400b663d58138a33"
                   "19603c8510c7b0d487918e32f834775b2065e97433b6eada548ad9d7f708f645"
                   "c233ce8a83b276e0");
    expect_contest("6", "282604780651", "238c3cc9b0fd9f9e",
                   "bf8886d2a950841cb883f3d4cfd9551f98abd2e6bf40d49291852f28d089fbb4"
                   "f0f9c327a6c5aaa2df4f363f17fbcf1efc6e658530f85e02005831b1e0672e49"
                   "50cbea3c951d4631");
    expect_contest("7", "1411b35a9a98da", "fbb2e9e412d0ecbc",
                   "39de1b563f1d5c25e7e8cebbe72aec226cb19034c1ef0fd38477d96d52d93450"
                   "f808e8b2f56adccbe5df1601e2c00a2523df2267d660934a3968c1426c69732f3b"
                   "4a4e2535c2cec9");
    expect_contest("8", "82e51b9f9cc718f9", "d9a539f8c1781fc4",
                   "41e04bb729ef6d49b985726452fe9011b0bfa4b25bae2a480ca4817ae8090fba"
                   "5a1341e0bcc38ae816874eadc6df5387d2374a821465ccb82c9292d128f3baef"
                   "10192c0f39c7a76d");
  }

  void real_contests() {
    const std::string start = "The unknown message is: ";
    expect("532b744cc20999", "7b32f08ae617de8c",
           to_hex(text_bytes(start + "It's time to move to a longer key length." +
                             std::string(7, '\x07'))),
           "82d34ea7b324860bc6d8615ce9f9e479885c98f1d2924c59ee475131013ea8ab"
           "d6f04dc81997af015eaff83fcd61b3c266897c8209874dfb07f256038dd51b01"
           "cae341c28dd7181d");
    expect(
        "63de7dc154f4d039", "79ced5d55075eafc",
        to_hex(text_bytes(start + "Some things are better left unread." + std::string(5, '\x05'))),
        "bf550155dc26f24b26e4854df90ad6796693ab923c72f137c8b70d1f60110c92"
        "ae2ecdfd70d3fd17dfb04212b97dcf22186ba715ce2c84bfce0dd04d006be146");
  }

  void decrypting_undoes_encrypting() {
    CPPUNIT_ASSERT(rc::check([] {
      const auto key = *rc::gen::resize(40, rc::gen::nonEmpty<Bytes>());
      Bytes text = *rc::gen::arbitrary<Bytes>();
      text.resize(text.size() / kBlockBytes * kBlockBytes);
      const Block iv{*rc::gen::arbitrary<std::uint32_t>(), *rc::gen::arbitrary<std::uint32_t>()};
      const Rc5 cipher(key);
      RC_ASSERT(cipher.decrypt_chained(iv, cipher.encrypt_chained(iv, text)) == text);
    }));
  }

  void key_lengths() {
    CPPUNIT_ASSERT_THROW(Rc5(Bytes{}), std::invalid_argument);
    CPPUNIT_ASSERT_THROW(Rc5(Bytes(256)), std::invalid_argument);
    Rc5(Bytes(255)).encrypt({1, 2});
  }

  void hex_digits() {
    CPPUNIT_ASSERT(from_hex("00fFA1") == (Bytes{0x00, 0xff, 0xa1}));
    CPPUNIT_ASSERT(from_hex("").empty());
    CPPUNIT_ASSERT_EQUAL(std::string("00ffa1"), to_hex({0x00, 0xff, 0xa1}));
    for (const char* bad : {"0", "123", "0g", "0x12", " 12", "1 2 "}) {
      CPPUNIT_ASSERT_THROW(from_hex(bad), std::invalid_argument);
    }
  }

 private:
  static void expect(const std::string& key, const std::string& iv, const std::string& plaintext,
                     const std::string& ciphertext) {
    const Rc5 cipher(from_hex(key));
    const Block start = block_at(from_hex(iv), 0);
    CPPUNIT_ASSERT_EQUAL(ciphertext, to_hex(cipher.encrypt_chained(start, from_hex(plaintext))));
    CPPUNIT_ASSERT_EQUAL(plaintext, to_hex(cipher.decrypt_chained(start, from_hex(ciphertext))));
  }

  static void expect_contest(const std::string& length, const std::string& key,
                             const std::string& iv, const std::string& ciphertext) {
    const std::string text = "The unknown message is: The RC5-32/12/" + length +
                             "-test contest's plaintext" + std::string(8, '\x08');
    expect(key, iv, to_hex(text_bytes(text)), ciphertext);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(Rc5Test);

}  // namespace
