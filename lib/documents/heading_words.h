#ifndef TIERCEL_LIB_DOCUMENTS_HEADING_WORDS_H_
#define TIERCEL_LIB_DOCUMENTS_HEADING_WORDS_H_

#include <string_view>

#include "lib/documents/labels.h"

// The words of headings, in lower case, in the languages of books.
namespace tiercel::document {

struct RankWords {
  Rank rank;
  std::u32string_view words;  // with spaces between
};
// Each stands before a number ("chapter 3") or behind one ("3. kapitel").
inline constexpr RankWords kKeywords[] = {
    {Rank::kVolume,
     U"volume vol. tome tomo band том tom díl köide kötet volumul τόμος "
     U"τομος cilt المجلد جلد כרך tập jilid ภาค томъ sējums tomas svazek"},
    {Rank::kBook,
     U"book buch livre libro livro boek книга księga kniha bok boken bog "
     U"bogen kirja könyv cartea βιβλίο βιβλιο kitap الكتاب کتاب ספר quyển "
     U"buku llibre knjiga књига liber raamat grāmata knyga leabhar kitabu"},
    {Rank::kPart,
     U"part teil theil partie parte deel часть act akt aufzug acte acto "
     U"atto акт действие część czesc část časť del delen osa osat rész "
     U"resz partea част частина μέρος μεροσ kısım kisim الجزء الباب بخش חלק "
     U"phần bagian भाग ส่วนที่ dio deo дио део dalis daļa pars cuid hluti "
     U"ნაწილი մաս жиынтық qism бөлім"},
    {Rank::kChapter,
     U"chapter chap. kapitel capitel chapitre capítulo capitulo capitolo "
     U"hoofdstuk глава canto gesang chant песнь stave letter brief lettre "
     U"carta lettera письмо lecture lesson appendix anhang annex annexe "
     U"apéndice appendice приложение 附录 附錄 付録 rozdział rozdzial "
     U"kapitola kapitlet kapittel kapitler luku peatükk nodaļa skyrius "
     U"fejezet capitolul capitol розділ раздзел поглавље poglavlje "
     U"poglavje κεφάλαιο κεφαλαιο κεφάλαιον κεφαλαιον bölüm الفصل فصل פרק "
     U"chương bab kabanata "
     U"अध्याय পরিচ্ছেদ অধ্যায় บทที่ บท ตอนที่ თავი գլուխ capítol kapitulua "
     U"caibidil pennod kafli ĉapitro caput kapitulli kapitull fəsil тарау "
     U"бүлэг ምዕራፍ அத்தியாயம் అధ్యాయం ಅಧ್ಯಾಯ അധ്യായം ਅਧਿਆਇ પ્રકરણ باب поглавје "
     U"hoofdst. kap. cap. rozdz. brev dopis liite příloha załącznik "
     U"dodatek bilaga vedlegg függelék anexa додаток παράρτημα παραρτημα"},
    {Rank::kSection,
     U"section abschnitt scene szene scène auftritt сцена явление "
     U"paragraf paragraaf oddział szakasz secțiunea ενότητα раздел scena "
     U"scen jelenet"},
};
// Each stands behind a number without a space: "第三章".
inline constexpr RankWords kCounters[] = {
    {Rank::kVolume, U"卷 巻 集 册 권"},
    {Rank::kPart, U"部 編 编 篇 幕 부"},
    {Rank::kChapter, U"章 回 話 话 課 课 讲 講 帖 장 화"},
    {Rank::kSection, U"节 節 場 场 절"},
};

// Names of parts that stand without a number, of a table of contents and of an
// index, with '|' between.
inline constexpr std::u32string_view kUnnumberedParts =
    U"preface|prologue|epilogue|introduction|foreword|afterword|"
    U"conclusion|appendix|appendices|acknowledgements|acknowledgments|"
    U"postscript|author's note|vorwort|nachwort|einleitung|prolog|epilog|"
    U"anhang|vorrede|schluss|préface|avant-propos|postface|épilogue|"
    U"prefacio|prólogo|epílogo|introducción|prefazione|prologo|epilogo|"
    U"introduzione|предисловие|пролог|эпилог|введение|вступление|"
    U"заключение|послесловие|приложение|序|序言|序章|序文|自序|前言|引言|"
    U"楔子|后记|後記|尾声|尾聲|跋|结语|附录|附錄|終章|はじめに|おわりに|"
    U"まえがき|あとがき|プロローグ|エピローグ|解説|付録|förord|inledning|"
    U"efterord|forord|innledning|indledning|efterskrift|johdanto|esipuhe|"
    U"loppusanat|przedmowa|wstęp|zakończenie|posłowie|předmluva|úvod|"
    U"doslov|závěr|előszó|bevezetés|utószó|prefață|introducere|postfață|"
    U"передмова|вступ|післямова|епілог|епилог|πρόλογος|επίλογος|εισαγωγή|önsöz|"
    U"giriş|sonsöz|المقدمة|مقدمة|خاتمة|الخاتمة|مقدمه|הקדמה|מבוא|"
    U"אחרית דבר|lời nói đầu|lời mở đầu|lời kết|pendahuluan|"
    U"kata pengantar|penutup|voorwoord|inleiding|nawoord|introdução|"
    U"prefácio|posfácio|conclusión|conclusão|conclusione|dedication|"
    U"epigraph|머리말|서문|프롤로그|에필로그|후기|맺음말";
inline constexpr std::u32string_view kContentsTitles =
    U"contents|table of contents|inhalt|inhaltsverzeichnis|"
    U"table des matières|sommaire|índice|indice|sommario|sumário|inhoud|"
    U"содержание|оглавление|目录|目錄|目次|innehåll|innehållsförteckning|"
    U"innhold|indhold|indholdsfortegnelse|sisällys|sisällysluettelo|"
    U"spis treści|obsah|tartalom|tartalomjegyzék|cuprins|зміст|"
    U"съдържание|sadržaj|садржај|kazalo|περιεχόμενα|içindekiler|"
    U"المحتويات|الفهرس|فهرست|תוכן|תוכן העניינים|mục lục|daftar isi|"
    U"sumari|cynnwys|차례|목차|brief contents|the contents|"
    U"list of contents|list of chapters|contents of this book|"
    U"table des chapitres|tables des matières|tabla de contenidos|"
    U"tabla de materias|contenido|contenidos|tavola dei contenuti";
// Words between such a title and the volume that the table is of.
inline constexpr std::u32string_view kOfVolume =
    U"of |to |du |de |des |del |van ";
inline constexpr std::u32string_view kIndexTitles =
    U"index|general index|register|sachregister|stichwortverzeichnis|"
    U"указатель|предметный указатель|алфавитный указатель|索引|"
    U"indice analitico|índice alfabético|index général|skorowidz|"
    U"rejstřík|tárgymutató|dizin|sakregister|hakemisto|색인|찾아보기";

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_HEADING_WORDS_H_
