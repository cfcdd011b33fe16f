#ifndef TIERCEL_LIB_DOCUMENTS_NUMBER_WORDS_H_
#define TIERCEL_LIB_DOCUMENTS_NUMBER_WORDS_H_

#include <string_view>

// Numbers in words, in lower case, in the languages of books. Others come by
// composition: "twenty-one", "einundzwanzigstes", "quatre-vingt-dixième".
namespace tiercel::document {

struct NumberWords {
  int value;
  std::u32string_view words;  // with spaces between
};
// Cardinals, and ordinals that are not cardinals with an ending, or their
// stems.
inline constexpr NumberWords kNumberWords[] = {
    {1,
     U"one first eins erst premier première primero primera primer primo "
     U"prima один одна перв перш първ пръв prvá prvý první första "
     U"første fyrste ensimmäinen yksi pierwszy pierwsza pierwsze jeden "
     U"első egyedik întâi întîi birinci bir πρώτο πρωτο πρώτος πρωτοσ "
     U"πρώτη πρωτη الأول الأولى اول یکم ראשון eerste één eén prvo prvi "
     U"primeira primeiro một uno unua primus пръва पहला पहली एक "
     U"πρῶτον πρώτον πρωτον primum satu pertama прв prva אחת אחד "
     U"الحادي الحادية یک nhất"},
    {2,
     U"two second zwei zweit deux deuxième seconde segundo segunda "
     U"secondo seconda due dos dois два две втор andra anden andet "
     U"annet andre toinen kaksi drugi druga drugie dwa druhá druhý "
     U"druhé második doilea doua ikinci iki δεύτερο δευτερο δεύτερος "
     U"δευτεροσ δεύτερη الثاني الثانية دوم שני tweede twee друг drugo "
     U"segon hai dua secundus दूसरा दूसरी दो "
     U"δεύτερον δευτερον secundum kedua שנים שתים שניים שתיים دو"},
    {3,
     U"three third drei dritt trois troisième tercero tercera tercer "
     U"terzo terza tre tres três трет три tredje kolmas kolme trzeci "
     U"trzecia trzecie trzy třetí tretia harmadik treilea treia üçüncü "
     U"üç τρίτο τριτο τρίτος τριτοσ τρίτη الثالث الثالثة سوم שלישי "
     U"derde drie треће treće treći terceira terceiro ba tria tertius "
     U"तीसरा तीसरी तीन "
     U"τρίτον τριτον tertium tiga ketiga трећ treća שלושה שלוש سه"},
    {4,
     U"four fourth vier viert quatre quatrième cuarto cuarta cuatro "
     U"quarto quarta quattro quatro quart четверт четвёрт четвърт "
     U"четыре четири fjärde fjerde neljäs neljä czwarty czwarta "
     U"czwarte cztery čtvrtá čtvrtý negyedik patrulea patra dördüncü "
     U"dört τέταρτο τεταρτο τέταρτος الرابع الرابعة چهارم רביעי vierde "
     U"četvrto četvrti bốn kvara quartus चौथा चौथी चार "
     U"τέταρτον τεταρτον quartum empat keempat четврт četvrta ארבעה "
     U"ארבע چهار"},
    {5,
     U"five fifth fünf fünft cinq cinquième quinto quinta cinque cinco "
     U"cinquè пят пет п’ят п'ят femte viides viisi piąty piąta piąte "
     U"pięć pátá pátý ötödik cincilea cincea beşinci beş πέμπτο πεμπτο "
     U"πέμπτος الخامس الخامسة پنجم חמישי vijfde vijf peto peti năm "
     U"kvina quintus पाँचवाँ पांचवां पाँच "
     U"πέμπτον πεμπτον quintum lima kelima peta חמישה חמש پنج"},
    {6,
     U"six sixth sechs sechst sixième sexto sexta sesto sesta sei seis "
     U"sisè шест шост sjätte sjette kuudes kuusi szósty szósta szóste "
     U"sześć šestá šestý hatodik şaselea șaselea șasea altıncı έκτο "
     U"εκτο έκτος السادس السادسة ششم ששי zesde zes šesto šesti sáu "
     U"sesa sextus छठा छठी छह "
     U"έκτον εκτον sextum enam keenam šesta שישי שישית שישה שש شش "
     U"altinci alti"},
    {7,
     U"seven seventh sieben siebent siebt sept septième séptimo séptima "
     U"sétimo sétima settimo settima siete sette sete setè седьм сьом "
     U"седм семь седем sjunde syvende sjuende seitsemäs seitsemän "
     U"siódmy siódma siódme siedem sedmá sedmý hetedik şaptelea "
     U"șaptelea șaptea yedinci yedi έβδομο εβδομο έβδομος السابع "
     U"السابعة هفتم שביעי zevende zeven sedmo sedmi bảy sepa septimus "
     U"सातवाँ सात "
     U"έβδομον εβδομον septimum tujuh ketujuh sedma שבעה שבע هفت"},
    {8,
     U"eight eighth acht huit huitième octavo octava ottavo ottava oitavo "
     U"oitava ocho otto oito vuitè восьм осм восемь осем åttonde "
     U"ottende åttende kahdeksas kahdeksan ósmy ósma ósme osiem osmá "
     U"osmý nyolcadik optulea opta sekizinci sekiz όγδοο ογδοο όγδοος "
     U"الثامن الثامنة هشتم שמיני achtste osmo osmi tám oka octavus "
     U"आठवाँ आठ "
     U"όγδοον ογδοον octavum delapan kedelapan osma שמונה هشت"},
    {9,
     U"nine ninth neun neunt neuf neuvième noveno novena nono nona nueve "
     U"nove novè девят девет дев’ят дев'ят nionde niende yhdeksäs "
     U"yhdeksän dziewiąty dziewiąta dziewiąte dziewięć devátá devátý "
     U"kilencedik nouălea noua dokuzuncu dokuz ένατο ενατο ένατος "
     U"التاسع التاسعة نهم תשיעי negende negen deveto deveti chín naŭa "
     U"nonus नौवाँ नौ "
     U"ένατον ενατον nonum sembilan kesembilan deveta תשעה תשע نه"},
    {10,
     U"ten tenth zehn zehnt dix dixième décimo décima decimo decima diez "
     U"dieci dez desè десят десет tionde tiende kymmenes kymmenen "
     U"dziesiąty dziesiąta dziesiąte dziesięć desátá desátý tizedik "
     U"zecelea zecea onuncu δέκατο δεκατο δέκατος العاشر العاشرة دهم "
     U"עשירי tien deseto deseti mười deka decimus दसवाँ दस "
     U"δέκατον δεκατον decimum sepuluh kesepuluh deseta עשרה עשר ده"},
    {11,
     U"eleven eleventh elf elft elfde onze once undécimo undécima undici onzè "
     U"одиннадцат одинадцят единадесет elva elfte elleve ellevte "
     U"jedenast jedenaście jedenáct ενδέκατο ενδεκατο undecimus "
     U"undecimum sebelas kesebelas یازده یازدهم"},
    {12,
     U"twelve twelfth zwölf zwölft douze doce duodécimo duodécima dodici "
     U"doze dotzè двенадцат дванадцят дванадесет twaalf tolv tolfte "
     U"tolvte dwunast dwanaście dvanáct δωδέκατο δωδεκατο duodecimus "
     U"duodecimum duabelas dvanaesta دوازده دوازدهم"},
    {13,
     U"thirteen dreizehn treize trece tredici treze тринадцат тринадесет "
     U"dertien tretton trettende trzynast trzynaście třináct "
     U"thirteenth тринадцят سیزده سیزدهم"},
    {14,
     U"fourteen vierzehn quatorze catorce quattordici catorze "
     U"четырнадцат чотирнадцят четиринадесет veertien fjorton "
     U"fjortende czternast czternaście čtrnáct "
     U"fourteenth четрнаест چهارده چهاردهم"},
    {15,
     U"fifteen fünfzehn quinze quince quindici пятнадцат п’ятнадцят "
     U"петнадесет vijftien femton femtende piętnast piętnaście patnáct "
     U"fifteenth петнаест پانزده پانزدهم"},
    {16,
     U"sixteen sechzehn seize dieciséis dieciseis sedici dezesseis "
     U"dezasseis шестнадцат шістнадцят шестнадесет zestien sexton "
     U"sekstende szesnast szesnaście šestnáct "
     U"sixteenth шеснаест شانزده شانزدهم"},
    {17,
     U"seventeen siebzehn diecisiete diciassette dezessete dezassete "
     U"семнадцат сімнадцят седемнадесет zeventien sjutton syttende "
     U"siedemnast siedemnaście sedmnáct "
     U"seventeenth седамнаест هفده هفدهم"},
    {18,
     U"eighteen achtzehn dieciocho diciotto dezoito восемнадцат "
     U"вісімнадцят осемнадесет achttien arton adertonde attende "
     U"osiemnast osiemnaście osmnáct "
     U"eighteenth осамнаест هجده هجدهم"},
    {19,
     U"nineteen neunzehn diecinueve diciannove dezenove dezanove "
     U"девятнадцат дев’ятнадцят деветнадесет negentien nitton nittende "
     U"dziewiętnast dziewiętnaście devatenáct "
     U"nineteenth деветнаест نوزده نوزدهم"},
    {20,
     U"twenty zwanzig vingt vingts veinte veinti venti vinte vigésimo "
     U"vigésima двадцат двадцят двадесет twintig tjugo tyve tyvende "
     U"tjuende dwudziest dwadzieścia dvacet dvacát húsz huszadik "
     U"εικοστό εικοστο "
     U"بیست بیستم العشرون العشرين עשרים vicesimum vigesimum"},
    {30,
     U"thirty dreißig dreissig trente treinta trenta trinta trigésimo "
     U"trigésima тридцат тридцят тридесет dertig trettio tredive "
     U"tredivte trzydziest trzydzieści třicet třicát"},
    {40,
     U"forty vierzig quarante cuarenta quaranta quarenta cuadragésimo "
     U"quadragésimo сорок сороков veertig fyrtio czterdziest "
     U"czterdzieści čtyřicet čtyřicát"},
    {50,
     U"fifty fünfzig cinquante cincuenta cinquanta cinquenta "
     U"quincuagésimo quinquagésimo пятьдесят пятидесят п’ятдесят "
     U"vijftig femtio pięćdziesiąt padesát"},
    {60,
     U"sixty sechzig soixante sesenta sessanta sessenta шестьдесят "
     U"шестидесят zestig sextio sześćdziesiąt šedesát"},
    {70,
     U"seventy siebzig septante setenta settanta семьдесят семидесят "
     U"zeventig sjuttio siedemdziesiąt sedmdesát"},
    {80,
     U"eighty achtzig octante huitante ochenta ottanta oitenta "
     U"восемьдесят восьмидесят tachtig åttio osiemdziesiąt osmdesát"},
    {90,
     U"ninety neunzig nonante noventa novanta девяност negentig nittio "
     U"dziewięćdziesiąt devadesát"},
    {100,
     U"hundred hundredth hundert hundertst cent cien ciento cento "
     U"centième centésimo сто honderd hundra hundre sto száz"},
};

// They are articles too, and numbers behind a keyword alone ("chapitre un").
inline constexpr std::u32string_view kArticles = U"un une una um uma een ett";

// The forms of ones that have tens before or behind them in one word, and of
// tens that have ones behind them ("décimo tercero", "on birinci").
inline constexpr NumberWords kComposedOnes[] = {
    {1,
     U"ein een en ett un une una um uma unu yhdes egyedik unième unieme mốt"},
    {2, U"to kahdes doi kettedik dós"},
    {3, U"drie trei kolmas trés tré"},
    {4, U"fire pai neljäs tư"},
    {5, U"fem cinci viides lăm"},
    {6, U"seks șai şai kuudes séis"},
    {7, U"syv șapte şapte seitsemäs"},
    {8, U"otte opt kahdeksas"},
    {9, U"ni nouă yhdeksäs"},
};
inline constexpr NumberWords kComposedTens[] = {
    {10, U"décimo décima decimo decima δέκατο δεκατο on tizen mười"},
    {20, U"vigésimo yirmi huszon بیست"},
    {30, U"otuz harminc"},
    {40, U"kırk negyven"},
};

// Between tens and ones of two words; between ones and tens of one word.
inline constexpr std::u32string_view kJoiners[] = {
    U" and ", U" et ",  U"-et-", U" y ", U" e ",  U" i ",  U" og ",
    U" och ", U" und ", U" en ", U" и ", U" și ", U" şi ", U" و ",
    U" و",    U" ו",    U"-",    U"־",   U" "};
inline constexpr std::u32string_view kJoinersInWords[] = {U"und", U"en", U"ën",
                                                          U"og"};

// Endings of ones that make teens ("yhdestoista") or tens of them.
struct NumberEnding {
  std::u32string_view ending;
  int factor;
  int sum;
};
inline constexpr NumberEnding kNumberEndings[] = {{U"toista", 1, 10},
                                                  {U"sprezece", 1, 10},
                                                  {U"sprezecelea", 1, 10},
                                                  {U"kymmentä", 10, 0},
                                                  {U"kymmenes", 10, 0}};
// Words behind ones that make teens or tens of them, in Arabic, Hebrew,
// Indonesian ("dua belas", "dua puluh satu") and Vietnamese ("hai mươi mốt").
inline constexpr NumberEnding kWordsBehindOnes[] = {
    {U"عشر", 1, 10},   {U"عشرة", 1, 10},  {U"עשר", 1, 10}, {U"עשרה", 1, 10},
    {U"belas", 1, 10}, {U"puluh", 10, 0}, {U"mươi", 10, 0}};

// Endings of ordinals, which are cut off before the stem is looked up, and the
// ends that stems may have lost ("onz-ième" of "onze", "twent-ieth").
inline constexpr std::u32string_view kOrdinalEndings[] = {
    U"es",  U"er",  U"en",  U"e",    U"stes", U"ster",  U"sten",  U"ste",
    U"st",  U"de",  U"nde", U"ième", U"ieme", U"esimo", U"esima", U"tes",
    U"ter", U"ten", U"te",  U"t",    U"ieth", U"y",     U"a",     U"o",
    U"á",   U"ý",   U"é",   U"lea",  U"ая",   U"ый",    U"ой",    U"ое",
    U"ья",  U"ий",  U"ье",  U"ій",   U"я",    U"ь",     U"а",     U"е",
    U"о",   U"и",   U"ата", U"ото"};
inline constexpr std::u32string_view kStemEnds[] = {U"",  U"e", U"i",
                                                    U"a", U"o", U"y"};

// "Last", which counts as a number.
inline constexpr std::u32string_view kLastWords =
    U"last letzter letzte letztes dernier dernière último última ultimo "
    U"ultima ultimum ultimus последний последняя последнее ostatni ostatnia "
    U"sista sidste "
    U"laatste viimeinen utolsó poslední остання";

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_NUMBER_WORDS_H_
