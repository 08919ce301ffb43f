"""Words with letters beyond ASCII, by language, as they occur in headers and remarks of recordings.

The words show which letters stand beside each other. So a word that is not in this list can be scored, too:
Überlauf begins like Überdruck. If Fogline asks too often about the texts of a language, add words of that
language.
"""

from __future__ import annotations

_TEXTS = {
    "German": """
        größe größer größte höhe höchst länge wärme kühlung kühler kälte für über überdruck rücklauf zurück
        öffnung geöffnet öl lüftung lüfter zähler zählerstand stückzahl störung gestört prüfung gerät geräte
        außen außentemperatur straße maß maße gemäß durchfluß durchfluss fluß groß schließen heiß weiß
        anschluß fräse fräsen werkstück müll brüssel köln münchen düsseldorf zürich österreich märz jänner
        trübung füllstand behälter flüssigkeit gebäude räume trägheit verfügbar gültig ungültig änderung
        überwachung führung tür hähne säge schüttgut späne säure löslich gelöst möglich fühler stärke wähler
        läuft täglich nächste wöchentlich häufigkeit übergabe ausgelöst müller schäfer jürgen günther jörg
        böe tüv fläche bestätigt träger schätzung dämpfung fällig mäßig grün rötlich süd südlich erhöht
        körnung mühle bürste schlüssel stück gefäß spülen rührer übertragung verzögerung nässe gläser
        zündung kühe förderband düse
    """,
    "French": """
        température tête être fenêtre août été hôtel côté débit qualité quantité état arrêt arrêté démarrage
        français façade reçu leçon ça île année février décembre à là où dès très après près problème
        système mètre kilomètre règle numéro énergie électrique électricité fréquence humidité précipitation
        capteur élevé zéro œuvre cœur œil nœud sœur vœu chaîne boîte contrôle pôle tôle dépôt bientôt naïf
        naïve maïs noël forêt intérêt prêt même enquête conquête bâtiment château gâteau âge tâche connaître
        maître coût goût sûr mûr dû brûleur brûlé flûte réservoir défaut sécurité évènement événement
        régulation éteint allumé activé désactivé fermé écart échelle période durée journée câble crête bête
        évêque dîner pâte pêche lumière première dernière matière séchage préchauffage créé entrée sortie
        gêne chêne pâle mâle
    """,
    "Spanish": """
        año años señal señales número números estación estaciones día días mañana tensión presión medición
        válvula energía eléctrica eléctrico máximo mínimo código teléfono ubicación dirección operación
        duración configuración situación área nivel público técnico crítico médico última último sábado
        miércoles también según sí así aquí está estás más función vacío frío río tío ángulo pequeño español
        niño tamaño daño compañía pingüino agüero lingüística corazón razón jamón avión útil débil fácil
        difícil árbol almacén línea líneas tubería batería calefacción refrigeración ventilación éxito
        índice cañón leña bañera
    """,
    "Portuguese": """
        pressão ação ações são não então estação estações medição medições operação situação função funções
        manhã irmã maçã nível água tensão vazão mínimo máximo código início período média médio mês três
        você até está já válvula energia elétrica elétrico potência frequência referência ciência eficiência
        câmara lâmpada ângulo balanço preço serviço força cabeça coração limitação variação duração produção
        posição direção opção padrão botão cartão alemão joão informações condições edifício próximo última
        último técnico óleo módulo fábrica máquina avô pôr pêssego inglês francês limões pensões vêm têm
    """,
    "Italian": """
        città qualità quantità velocità umidità elettricità unità attività densità intensità capacità
        proprietà è perché poiché cioè caffè più già giù così lunedì martedì mercoledì giovedì venerdì metà
        libertà però ciò perciò virtù gioventù novità là sì né sé tè lassù laggiù farò potrà sarà
    """,
    "Danish": """
        køling køle måling måler måned år på blæser blæst højde høj tør tørre tørring fejl åben åbnet vægt
        væske tæthed tæller mængde længde bredde hæld hælde målt grøn rød blå gør før børste sø søndag
        lørdag løb løber strøm spænding varme trækker træ ræs være værdi værk færdig nødstop nærhed ændring
        ændret ø øl ør ål æble æg afkøling røg røgfri størrelse sådan også måde råvare sæson særlig næste
        læs læse læk lækage fødder bøde kæde væg tågehorn tåge bølge bøjle følge følger føler frø grænse
        grænseværdi kløft tønde forår efterår køkken bæk dræn sværd gærde løg skål kærne skæv mørk tærte
        gårde sædvanlig fjæder blåt råt
    """,
    "Norwegian": """
        måling måler måned år på høyde høy støy kjøling kjøler ønsket øverste strøm værstasjon vær værdata
        målt nå når også må få gå stå lås låst åpen åpnet tørke rør rørledning grønn rød blå løp større støv
        snødybde snø sjø sjøtemperatur være ære kjære høst bøker båt tåre skåp sær fjære lørdag søndag
    """,
    "Swedish": """
        mätning mätare mätvärde värde värme värmepump från på går gång gånger påverkan flöde flöden lägre
        högre hög högst höjd låg läge länk nivå månad måndag lördag söndag år åter öppen öppet stängd stängt
        spänning ström förbrukning fördröjning för före över under större rör rörelse vätska bränsle nästa
        många åtgärd område även är där här när väder tält kväll ljusnivå källare hjälp välj växel sätt så
        små själv frånluft sjö träd gräs näve söder mörk köld bröd smör kök gård tåg ålder råg fågel kärna
        säng järn möte
    """,
    "Finnish": """
        lämpötila lämpö päivä päivämäärä määrä määrät sähkö sähkön sähköenergia käyttö käytössä sää sääasema
        yö vähän pää lähde lähtö välillä jäähdytys lämmitys päällä säätö säätöventtiili näyte näytteet höyry
        öljy öljyn työ työt syöttö tyhjä hälytys häiriö vesimäärä äänitaso jäätelö hyvää ystävä tänään pöytä
        sänky
    """,
    "Icelandic": """
        þrýstingur það þar þá frá tími tíma mæling mælir úrkoma veður vindhraði hæð íbúð síðan áður öðru
        góður við á í ý því þýða býður sýni dýpt staða þyngd bleyta þörf
    """,
    "Polish": """
        źródło wartość ciśnienie prędkość wilgotność ilość jakość długość szerokość wysokość gęstość
        częstość dół stół był była było być są się będzie węgiel węgl węgla mięso imię część części więc
        dzień dnia koń końcowy początek początkowy ściana ściany środa środek śr piątek październik styczeń
        sierpień grudzień wrzesień kwiecień łódź łączny łącznie łożysko wyłączony włączony załączony wył wł
        zł złoty zużycie żądany żądana że także też może możliwy napięcie natężenie pomiarów przepływ
        przepływu żarówka żuraw tężnia tęcza ręczny ręcznie rękaw księga księżyc źle źrenica ćwierć ćma
        pamięć sieć siłownia siła świeży świeca oś ość gość ktoś główny główna górny ciężar ciężki krążek
        wąż wąski gorący gorąca ciąg przyłącze społka spółka kraków gdańsk poznań wrocław toruń rzeszów
        białystok częstochowa ostrzeżenie błąd błędy zakłócenie próba próbka mróz źdźbło pręt piętro wnętrze
        zewnętrzna wewnętrzna ochłodzenie chłodzenie chłodnica pętla gałąź żółw mąka kąt sąd gęś pięść dźwig
        łyżka żaba ćwiczenie łańcuch grzałka młyn wał
    """,
    "Czech": """
        čas času časy měření měřič měřicí rychlost průtok průměr průměrná množství žlutý žluťoučký kůň úpěl
        ďábelské ódy šířka šum výška výkon délka počet začátek konečný příkon příští řízení řada řádek říjen
        září únor květen červen červenec středa čtvrtek pátek neděle úterý pondělí čidlo čidla čerpadlo
        otevřeno zavřeno napětí ohřev ohřívač důležité důvod původ dům stůl vůz můj bližší nejnižší vyšší
        nižší dešť déšť dešťový sníh vítr směr světlo tepelné čerpání účet úhel údaj úroveň křivka křížek
        kříž hřídel tvář věž město místo plzeň příbram třída tř štítek štěrk tloušťka síť závada překročení
        překročeno přehled předek při před přes přístroj vnější vnitřní venkovní hůř chůze číslo ječmen loď
        labuť zámek větev mýdlo nůž
    """,
    "Slovak": """
        čas merač vlhkosť rýchlosť množstvo šírka výška výkon dĺžka počet začiatok príkon október nedeľa
        štvrtok poľa kľúč kľud ľavý ľahký veľký veľkosť jún júl február január stĺpec vŕtačka vŕba ôsmy stôl
        kôň môže dôvod tepelné čerpadlo väčší päť mäso ďalší ďaleko hĺbka tĺk napätie zapnuté vypnuté žltý
        údaj snímač tieň ľad ťava kôra vôňa väzba stĺp dážď mäkký
    """,
    "Hungarian": """
        idő időpont hőmérséklet hőmérő hő nyomás mérés mérések mérő mérőóra páratartalom sebesség mennyiség
        szélesség magasság hosszúság teljesítmény kezdő végső vége érték értékek átlag összes összesen
        összeg fűtés fűtő hűtés hűtő gőz gőzös időszak erő erősítő nő első utolsó dátum óra másodperc
        állapot hibás külső belső jövő töltöttség feszültség áram áramlás szűrő víz vízszint gáz földgáz
        fűrész szintű egyszerű gyűrű kő működés működik szivattyú szélső ősz eső cső csővezeték július
        június március február április május október csütörtök péntek hétfő előző először előre elő fölött
        fő hőfok hőt kettő levegő legfőbb mező nőtt őr őrzés őszi szőlő tekintő tetőző tető tüdő tűz vevő
        velő zöld közép között különbség külön területe üzem üzemi üzemóra gép gépház kép képlet ház
        készülék ellenőrzés jelző jellemző bőr kőolaj
    """,
    "Croatian": """
        mjerač vlažnost količina širina duljina početak završetak uređaj između također vođa žarulja žuto
        čestica čvor čišćenje kuća kućište noć moć već veća ćelija četvrtak ožujak siječanj veljača lipanj
        šećer šum pogreška greška isključeno uključeno očitanje očekivano snježna točka tlačni tečaj račun
        ključ ključni došao možda može žica žarnica število čas povprečje črpalka tlačna širjava đak ćup
        kruška čelik
    """,
    "Romanian": """
        temperatură viteză căldură încălzire răcire apă înălţime lăţime număr până după fără mâine sâmbătă
        mână pâine român română în între însă ieşire uşă oraş aşa şi şir maşină ţară ţeavă faţă viaţă staţie
        staţii funcţie măsurare măsurători măsurat dată oră energie electrică defecţiune alarmă oprită
        pornită cantităţi pompă poziţie lână fântână scândură ţigară sticlă brânză
    """,
    "Turkish": """
        basınç sıcaklık değer ölçüm ölçümler şehir ığdır istanbul güç gücü akış ağırlık yağış yağmur rüzgâr
        hız hızı açık kapalı açma çalışma çalışıyor süre süresi gün günü günlük yıl ışık ısı ısıtma soğutma
        soğuk sıvı sıra sıfır doğru yanlış eğim eşik değişim değişken çıkış giriş başlangıç bitiş başla şube
        şubat ağustos eylül kasım aralık mayıs çarşamba perşembe salı üretim tüketim tüketimi müşteri ürün
        ürünler üst iç dış boş yüksek düşük küçük büyük ağ bağlantı sağlık dağ bölge bölgesi öğle öğrenci
        derinliği çivi ağaç çiğ şişe kaşık düğme yıldız kırmızı yeşil bıçak fırın şeker taş vidası yağı
        ölçek dişli eğri ağız
    """,
    "Lithuanian": """
        temperatūra slėgis slėgio drėgmė reikšmė matavimų vidutinė aukštis šiluma šilumos šaltis vėjas vėjo
        įtampa įjungta išjungta srovė mėnuo mėnesio naktį žiema žemė žemės žymė ąžuolas ąsotis čia šešių
        šeši sąskaita ląstelė gręžinys tęsti eglė būsena būklė dūmai dūmų rūsys kūrenimas lūžis jūra jūros
        ryškumas siurblių vožtuvas rodmenų žmogus žingsnis ryšys dėžė metų dienų valandų sekundžių minučių
        išorės viršus apačia drėgnumas sūkiai krūvis priežiūra įrašas įrašai
    """,
    "Latvian": """
        temperatūra ātrums vērtība mērījums mērījumi vējš ēka ēkas ūdens ūdeņa ķermenis ķēde ģenerators ļoti
        ņemt šķidrums čaula žāvēšana jūlijs jūnijs aprīlis līmenis līnija mīnuss minūte stāvoklis stāvs
        kļūda kļūdas ieslēgts izslēgts dzesēšana strāva enerģija elektrība sākums sērija sūknis sūkņi vārsts
        rādītājs dienā nedēļa ūdenī ūdeņradis gāze gaisā āra ārējā iekšējā mēneša mēnesis zīme dzīvoklis
        sniegā tīkls līdz lāzers kārta pļauja pļava
    """,
    "Estonian": """
        rõhk väärtus mõõtmine mõõtja kõrgus jõud võimsus päev öö kuupäev õhk õhu õli õlitase ööpäev süsteem
        külm külmik küte kütte lülitatud töö sõnum võti põld rõngas kõne
    """,
    "Russian": """
        температура давление влажность скорость время значение измерение измерения расход мощность
        напряжение ток дата час часы минута секунда день месяц год высота ширина длина уровень состояние
        ошибка датчик насос вода воздух газ энергия счетчик станция показания среднее максимум минимум тепло
        нагрев охлаждение вентилятор клапан открыт закрыт включено выключено авария предупреждение объем вес
        масса количество номер имя название город москва улица дом цех линия машина двигатель частота ветер
        направление осадки снег дождь солнце свет шум сигнал сила движение прибор начало конец сумма итого
        цена стоимость товар продукт заказ клиент партия смена мотор труба щит крыша кабель провод магнит
        поршень ключ котел бак фильтр подача отопление потребление учет узел адрес тип код группа статус
        норма заявка
    """,
    "Ukrainian": """
        температура тиск вологість швидкість час значення вимірювання витрата потужність напруга струм дата
        година хвилина день місяць рік висота ширина рівень стан помилка датчик насос вода повітря енергія
        лічильник станція показники київ україна опалення охолодження відкрито закрито увімкнено вимкнено
    """,
    "Bulgarian": """
        налягане влажност скорост време стойност измерване разход мощност напрежение ток дата час ден месец
        година височина ширина ниво състояние грешка датчик помпа въздух енергия електромер включен изключен
        първи пълен
    """,
    "Greek": """
        θερμοκρασία πίεση υγρασία ταχύτητα ώρα ώρες χρόνος τιμή τιμές όνομα ημερομηνία μέτρηση μετρήσεις
        ισχύς τάση ρεύμα ενέργεια κατάσταση σφάλμα αισθητήρας στάθμη παροχή ύψος μήκος πλάτος ημέρα μήνας
        έτος άνεμος βροχή νερό νερού αέρας αέρα μέση μέγιστη ελάχιστη αθήνα σταθμός αντλία ανοικτό κλειστό
        κινητήρας ροή δρόμος δεδομένα λεπτά ηλεκτρικό κόστος ποσότητα βαλβίδα λέβητας θέρμανση ψύξη κλίμα
        σήμα αριθμός σύνολο όριο χαμηλό υψηλό εξωτερική εσωτερική δείκτης μονάδα περιοχή πόλη κτίριο φως
        σύστημα λειτουργία κίνηση κωδικός στροφές
    """,
    "Hebrew": """
        טמפרטורה לחץ לחות מהירות זמן ערך מדידה תאריך שעה יום חודש שנה גובה מצב תקלה חיישן משאבה מים אוויר
        אנרגיה מונה תחנה הספק מתח זרם רוח גשם כיוון ממוצע שם מספר חשמל קירור חימום שסתום דליפה אזור בניין
        חדר קומה סוג קוד ערכים מקסימום מינימום כמות צריכה עלות פתוח סגור פעיל כבוי רגיל חריגה התראה אור קול
        משקל נפח אורך רוחב
    """,
    "Arabic": """
        درجة الحرارة الضغط الرطوبة السرعة الوقت القيمة القياس التاريخ الساعة اليوم الشهر السنة الارتفاع
        الحالة خطأ المستشعر المضخة الماء الهواء الطاقة العداد المحطة القدرة الجهد التيار الرياح المطر
        المتوسط الاسم قياس قيمة وقت تاريخ حرارة ضغط رطوبة سرعة خزان مستوى تدفق كهرباء تبريد تسخين مفتوح مغلق
        تشغيل إيقاف إنذار رقم نوع منطقة مبنى غرفة متوسط أقصى أدنى كمية استهلاك تكلفة وزن حجم طول عرض
    """,
}
WORDS = {language: frozenset(words.split()) for language, words in _TEXTS.items()}

_NORTHERN = ("Danish", "Norwegian", "Swedish", "Finnish", "Icelandic", "Estonian")
WESTERN = ("German", "French", "Spanish", "Portuguese", "Italian", *_NORTHERN)
CENTRAL = ("Polish", "Czech", "Slovak", "Hungarian", "Croatian", "Romanian", "German")
BALTIC = ("Lithuanian", "Latvian", "Estonian", "Polish", "German", "Swedish", "Finnish")
TURKISH = ("Turkish", "German", "French")
CYRILLIC = ("Russian", "Ukrainian", "Bulgarian")
