"""Words that talks use much, by language: evidence of which one a short line is in.

Common words and those of searches and bargains, without names. A word that two of these languages share is evidence for
neither against the other. English has the shorthand of chats and usual misspellings, too.
"""

from __future__ import annotations

_ENGLISH = """
    a about above account afraid after again against age ago agree all allowed alone already also always am an and
    another answer any any1 anybody anyone anything anyway are arent around as ask asked asking asks at aunt autumn
    away b4 baby back bad bag bakery bank bath bathroom bc be because bed been before behind being believe below best
    better between big birthday bit blood blue board boat book books boss both bottle bottom bought box boxes boy boys
    bread breakfast bring bro brother brothers brought bruh btw bucks building bus but buy by bye cake call called
    came can cant car card cards care carry cash cat ceiling cent chair cheap cheaper check child children choir
    choose church clean clinic clock close club coat coffee cold come comes coming common company contract cook cool
    correct cos cost costs could couldnt council count course court cousin coz cross cry cut cuz cya da dad dads dat
    date daughter day days dead deal dear dem desk did didnt different dinner dis do doctor does doesnt dog doing
    dollar dollars done dont door double down drawer drink drive driving drop dry dude dunno each early eat eight
    eighteen eighty either eleven else empty end english enough envelope euros even evening evenings ever every every1
    everybody everyone everything exactly expensive extra eyes face failed fair family far father feel feet few
    fifteen fifty figure final find fine fire first fish five flat floor food foot for form forty found four fourteen
    fourth free freind frend fridge friend friends from front full garden gas gate gave get gets getting gimme girl
    give given glass go goal goes going gone gonna good got gotta gr8 great green group guess guy guys had half hall
    hand hands hang happy has hasnt hat hav have havent having he head hear heard heart hed hell hello help her here
    hers hes hey heya hi higher him his hiya hobby hold home hope hospital hour hours house how hows hundred husband
    id idc idk if ill im in into is isnt it itd itll its ive job just k keep kept key keys kids kind kinda kitchen kk
    knees knew kno know known knows knwo l8r lady lamp landlord last late later laugh law least leave leaves left
    lemme less let lets letter letters licence lie life lift light lights like liked likes line list lists little live
    lmao lol long longer look looked looking looks lose lost lot love lovely lower lunch luv m8 machine made make
    makes man many married match mate may maybe me mean means met metres middle might mind mine minute minutes miss
    moment money month months more morning mornings most mother mothers mouth move moved much mum mums must my myself
    n nah name names naw near nearly need needn neednt needs never new next nice night nights nine nineteen ninety
    ninth no no1 nobody nobodys none noon nope not nothing notice now number oclock of off offer office oh ok okay old
    omg on once one ones only open or order other others ought our ours out outside over owe own page pages paid paint
    paper papers parents park parking part party pass past pay paying pays penny people per person phone piano pick
    place plan play please pls plss plz point police poor post pounds ppl price put question quiet quite r rang rather
    read really reason red rent rest right ring rite road roof room round run running said same sat saw say saying
    says school sea seat second see seen sell send sent set seven seventy shall share she shed sheet shell shes shoes
    shop short should shouldnt show shut side sign signed since single sister sisters sit sitting six sixty sleep
    small so sofa sold some some1 somebody somebodys someone something somewhere son sooner sorry sort soup spare
    spring sry stairs stand standing stands start starts stay stays still stop stove straight street stuff such summer
    sumone sun sup suppose sure swap table take taken takes taking talk tea teh tell telling ten tent test than thank
    thanks that thats the their them then there therell theres these they theyd theyll theyre theyve thing things
    think thinking thinks third thirty this tho those though thought thousand three through thru tht thx till time
    times tin to today together told tomorrow tonight too took top town train tree trouble try turn turned twelve
    twenty twice two ty u uncle under understand until up ur us use used van very vote wait waiting walk walked wall
    wanna want wanted wants warm was wasnt wat watch water way we wed wedding week weekend weeks well wen went wer
    were wet weve what whatever whats when where wheres whether which while white who whod whoever whole whos whose
    why wich wife wil will window winter wish with without woman wont wood word words work worked working works worse
    worth wot would wouldnt write writing written wrong wrote wut y ya ye yea yeah year years yep yes yet yo you youd
    youll young your youre yours yourself youve yuo yup
"""
_GERMAN = """
    aber acht alle alles als also alter am an ander andere anderen anderer angebot arbeite arbeiten arbeitet auch auf
    aus bei beide beiden beim billig bin bis bisschen bist bitte da danke dann darf darfst darum das dass dein deine
    deinem deinen deiner dem den denke denkst denn der des deshalb deutsch dich die digga dir doch dort drei dreißig
    du durch echt egal eigentlich ein eine einem einen einer eines einmal eins er es etwas euch euer eure euro fahrrad
    falsch firma frau freund freunde freunden freundin freundinnen fuer fünf fünfzig für ganz gar geb gebe geben gegen
    geh gehen gehoert gehst geht gehört gemeinsam gemeinsame gemeinsamen genau gern gerne gesagt gestern gib gibst
    gibt glaub glaube glaubst gut hab habe haben habt hallo hast hat hatte hatten hattest heisse heisst heiße heißen
    heißt heute hier hinter hobby hoch hundert höchstens ich ihm ihn ihnen ihr ihre ihren im immer in ist ja jahr
    jahre jedenfalls jemand jemandem jemanden jetzt jo kann kannst kaufe kaufen kein keine keinem keinen keiner
    keinesfalls kenn kenne kennen kennst kennt klar klettern koennen komm kommen kommst kommt konnte kostet krass
    können könnt könnte lampe lass lasst leider letzte letztes leute liebe lieber liste mach mache machen machst macht
    mag magst mal mann mehr mein meine meinem meinen meiner mich mindestens mir mit moechte moin morgen muss musst
    möchte mögen müssen nach namen natürlich ne nee nehme nehmen nein neun nicht nichts nie niemand nimm nimmst noch
    nur nämlich nö ob oder ohne ok okay preis rauf richtig runter sag sage sagen sagst sagt schade schlecht schon
    sechs sehr seid sein seine seinen seiner seit selbst servus sich sie sieben sind so soll sollen sollst stimmt
    super tag tage teuer tisch trotzdem tschau tschuess tschüss ueber um und uns unser unsere unter verkaufe verkaufen
    verstanden versteh verstehe viel viele vielleicht vier vierzig vom von vor wandern wann war waren warst warum was
    weg weil weiss weisst weiß weißt welche welcher welches wem wen weniger wenn wer werde werden wie wieder wieso
    will willst wir wird wirklich wissen wo woanders wollen würde würdest zehn zeit zu zum zur zwanzig zwei über
    überhaupt
"""
_SPANISH = """
    adiós ahora ahí al algo alguien alguna alguno algunos algún allí amiga amigas amigo amigos antes aquel aquí así
    aunque ayer año años aún barato bici bien buena buenas bueno buenos cada cara caro casa cien cinco cincuenta claro
    como comprar compro común con conoce conocemos conocer conoces conozco cree creer crees creo cual cuando cuanto
    cuantos cuarenta cuatro cuesta cuál cuándo cuánta cuánto cómo dame dar das de decir del desde después dice dices
    diez digo dime donde dos doy día días dólares dónde el ella ellas ello ellos empresa en entiendo entonces entre
    era eres es esa ese eso español esta estar este esto estos estoy está están estás euro fue gente gracias gusta
    gustan gustaría ha haber había hace hacer haces hago han has hasta hay he hola hombre hoy igual ir la las le les
    lista llama llaman llamas llamo lo los luego lámpara mal mañana me mejor menos mesa mi mientras mis misma mismo
    mucha muchas mucho muchos muy más mío nada nadie ni ninguna ninguno ningún no nombre nos nosotros nuestra nuestro
    nueve nunca o ocho oferta oferto os otra otras otro otros para parece peor perdona perdón pero persona poco
    podemos poder por porque precio puede puedes puedo pues que querer quien quienes quiere quieres quiero quizás
    quién qué sabe saber sabes se seguro seis ser si siempre siete sillón sin sino sobre solo somos son soy su sus
    suyo sé sí sólo tal también tampoco tan tanto te tenemos tener tengo tiene tienen tienes toda todas todavía todo
    todos trabaja trabajan trabajar trabajas trabajo treinta tres tu tus tuyo tío tú un una unas uno unos usted
    ustedes va vale vamos van vas veinte vender vendo venga venta verdad vosotros voy vuestro y ya yo él última último
"""
_FRENCH = """
    accord acheter achète ai aime aiment aimer aimes aller allez alors ami amie amies amis année appelle appelles
    après as assez au aucun aucune aussi autre autres aux avait avant avec avez avoir avons beaucoup bien bonjour car
    ce cela celle celui cent ces cest cet cette chaque cher chez chère cinq cinquante combien comme comment commun
    comprends connais connaissez connait connaît connaître copain copine coute coûte croire crois croit daccord dans
    de demain depuis dernier dernière des deux dire dis dit dites dix donc donne donner donnes du déjà désolé elle
    elles en encore entre entreprise es est et eu euros eux faire fais fait faut faux fois français gens hier huit ici
    il ils jai jamais je jour jours jsais jsuis juste la lampe laquelle le lequel les leur leurs liste lui là ma
    maintenant mais mal me merci mes mieux moi moins mon même nan ne nest neuf nom non nos notre nous offre on ont ou
    ouais oui où par parce pardon pas pendant pense penses personne peu peut peut-être peuvent peux plus plutôt pour
    pourquoi pouvez pouvoir prend prendre prends prix puis quand quarante quatre que quel quelle quelles quelqu
    quelque quelques quelquun quels qui quil quoi rien sa sais sait salut sans savez savoir se sept ses sest si six
    sommes son sont sous suis sur sûr ta table tas te tes toi ton toujours tous tout toute toutes travaille
    travaillent travailler travailles trente trois trop très tu un une va vais vas vendre vends vers veut veux vingt
    voici voilà vont vos votre voulez vouloir vous vrai vélo ya ça étais était été êtes être
"""
_ITALIAN = """
    a abbiamo adesso ai al alla alle allo allora altra altri altro amica amici amico anche ancora andare andiamo anni
    anno avere avete aveva bene bici capisco caro cento certo che chi chiama chiamo ci ciao cinquanta cinque come
    comprare con conosce conosci conosco cosa costa così credi credo da dai dal dalla dare davvero degli dei del della
    delle dello deve devi devo di dice dici dico dieci dimmi dire do domani dopo dove due dà e ed era essere fa faccio
    fai fare fino fra gente giorni giorno giusto già gli grazie ha hai hanno ho ieri il in io italiano la lavora
    lavorano lavoro le lei lo loro lui là lì ma mai male meglio meno mi mia mie miei mio molti molto ne neanche nei
    nel nella nemmeno nessuno niente no noi nome non nostro nove nulla o offerta oggi ogni ora otto pensi penso per
    perché però piacciono piace più poco poi possiamo posso potere prego prezzo prima puoi può qua qualcosa qualcuno
    quale quali quando quanti quanto quaranta quattro quel quella quello questa queste questi questo qui quindi sa sai
    sapere scusa sei sempre senza sette si siamo siete so solo sono stata stato stesso su sua sul sulla suo suoi sé sì
    ti tra tre trenta troppo tu tua tuo tuoi tutta tutte tutti tutto ultimo un una uno va vado vai vanno vendere venti
    vero vi voglio voi volere vostro vuoi vuole è
"""
_DUTCH = """
    aan acht al alle alles als altijd andere bedankt bedrijf ben bent bij daar dag dan dank dat de denk denkt dertig
    deze die dit doe doei doen doet door drie duur een en erg even fiets ga gaan gaat geef geeft geen
    gemeenschappelijk geven gisteren goed goedkoop graag haar had hadden hallo heb hebben hebt heeft heel heet hem hen
    het heten hier hij hoe hoi honderd hun iemand iets ik is ja jaar je jij joh jou jouw juist jullie kan ken kennen
    kent kom komen komt koop kopen kost kun kunnen kunt kwijt laatste lamp lijst maar mag me meer mensen met mij mijn
    minder misschien moet moeten morgen naam naar nee neem negen niemand niet niets nog nooit nu of om omdat ook op
    over precies prijs slecht te tegen tien toch toen tot tussen twee twintig uit uw van vandaag veel veertig verkopen
    vier vijf vijftig voor vriend vrienden vriendin waar waarom wanneer want waren was wat we weet wel welke werken
    werkt weten wie wij wil willen wilt worden wordt ze zeg zeggen zegt zes zeven zij zijn zo zonder
"""
BY_LANGUAGE = {
    "en": _ENGLISH, "de": _GERMAN, "es": _SPANISH, "fr": _FRENCH, "it": _ITALIAN, "nl": _DUTCH,
}  # fmt: skip
"""Language (ISO 639-1) -> its words, in lower case, separated by spaces."""
