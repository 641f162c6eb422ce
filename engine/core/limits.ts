/**
 * Every bound of the engine in one place, unit last in the name, with the reason or source of each. The assertions at
 * the end say how they relate; a set that contradicts itself does not load. Leaf module.
 */
import { invariant } from './errors.ts'

const KB = 1024
const MB = 1024 * KB

export const limits = {
  // URLs
  /** Longer URLs are refused. RFC 9110 section 4.1 asks for at least 8,000 octets; Nutch refuses over 4,096. */
  urlBytesMax: 8_000,
  /** Distinct links taken from one page; the rest are counted as refused. */
  linksPerPageMax: 10_000,
  /** A longer link looks generated. sitemaps.org: a location has fewer than 2,048 characters. */
  linkCharsMax: 2_000,
  /** A link with more path segments looks generated: the default of Heritrix's TooManyPathSegments. */
  pathSegmentsMax: 20,
  /** The same segments may follow each other so often: the default of Heritrix's PathologicalPath. */
  pathRepeatsMax: 2,
  /** Hops of one chain, as the Fetch standard allows 20; browsers stop there too. */
  redirectsMax: 20,
  /** A depth is stored in two bytes. */
  depthMax: 65_535,
  priorityMax: 255,

  // Fetching
  /** undici's and Node's own default. */
  headerBytesMax: 16 * KB,
  /** RFC 9309 section 2.5: at least 500 kibibytes are read. */
  robotsBytesMax: 500 * KB,
  /** RFC 9309 section 2.3.1.2: at least five hops are followed. */
  robotsRedirectsMax: 5,
  /** RFC 9309 section 2.4: not longer than 24 hours. */
  robotsAgeMsMax: 24 * 60 * 60_000,
  /** How long a robots.txt that could not be had stands for "nothing is allowed" before it is asked for again. */
  robotsRetryMsMin: 10_000,
  /** The same while another origin of the host answers: asking holds the host, up to the connect timeout. */
  robotsOriginRetryMs: 60_000,
  /** A shorter max-age of a robots.txt is taken as this: it is asked for again at most every five minutes. */
  robotsAgeMsMin: 5 * 60_000,
  /** How long expired rules go on while robots.txt is unreachable. RFC 9309 section 2.3.1.4 names 30 days as long. */
  robotsStaleMsMax: 7 * 24 * 60 * 60_000,
  /** Verdicts in memory; the others wait in the store. Their texts together stay below the bytes. */
  robotsVerdictsMax: 10_000,
  robotsTextBytesMax: 16 * MB,
  /** A longer Crawl-delay is taken as this; Nutch skips such hosts at 30 s. */
  crawlDelayMsMax: 60_000,
  /** A longer Retry-After is taken as this. */
  retryAfterMsMax: 60 * 60_000,
  backoffMsMin: 1_000,
  backoffMsMax: 5 * 60_000,
  /** Of a host that does not answer at all, while it is waited for: it is asked again so long after its return at most. */
  hostRestMsMax: 32_000,
  /** Idle connections kept in all; the least recently used is closed first. Measured: 46-59 KB each with TLS. */
  socketsIdleMax: 256,
  socketIdleMsMax: 4_000,
  dnsTtlMsMin: 5_000,
  dnsTtlMsMax: 10 * 60_000,
  dnsNegativeTtlMs: 30_000,
  dnsEntriesMax: 10_000,
  dnsTimeoutMs: 5_000,
  /** Addresses of one name that are kept: a look-up may answer with thousands. */
  dnsAddressesMax: 8,
  connectTimeoutMs: 10_000,
  /** Of a TLS handshake. OpenSSL takes 100 KB of certificates, and few bytes besides; it passes over records that ask for another. */
  handshakeBytesMax: 256 * KB,
  /** How often it is counted. */
  handshakeLookMs: 50,
  /** A body of which no byte came for this long is given up, though its fetch has time left. */
  bodyStallMsMax: 10_000,

  // Slots
  /** Room in a slot for the request's facts (PageMeta as JSON): URL, referrer, a chain of redirects. */
  metaBytesMax: 64 * KB,
  /** Room in a slot for a result; a larger one travels with the end of the turn. 150 links are about 15 KB. */
  resultBytesInSlotMax: 64 * KB,
  slotsMin: 4,
  slotsMax: 512,
  /** Bytes of all slots together, and the same again for bodies that are being received. */
  arenaBytesMax: 64 * MB,
  bodyBytesInFlightMax: 64 * MB,
  /** A turn ends after this, so that Piscina sees its workers. */
  turnMsMax: 1_000,
  /** A page that takes longer in its worker costs the worker its life. */
  parseDeadlineMs: 10_000,
  /** A dead worker costs its page one try. */
  parseTriesMax: 2,
  /** Pages that are remembered as perhaps having ended the process: each one leaves as many as it had workers, and a crawl that dies again and again adds to them. */
  suspectsMax: 512,
  /** Deaths of the process while it reads a page alone; then the page is set aside. */
  suspectDeathsMax: 2,
  workerHeapMb: 256,
  /** An extractor's record as JSON; a larger one is a failure of the extractor. */
  extractedBytesMax: 1 * MB,
  /** A longer title is cut. */
  titleCharsMax: 1_024,

  // robots.txt, as the matcher on the main thread gets it
  /** As long as a URL may be: a longer pattern matches none. */
  robotsPatternCharsMax: 8_000,
  robotsSitemapsMax: 500,
  /** Characters that are looked at for the wildcards of all patterns together, for one URL: some 10 ms (measured). Beyond it the URL is denied. */
  robotsStepsMax: 2_000_000,

  // Sitemaps (sitemaps.org: at most 50,000 entries and 50 MB, a location of fewer than 2,048 characters)
  sitemapEntriesMax: 50_000,
  sitemapBytesMax: 50 * MB,
  /** Chunks of a sitemap, on the wire and decoded: about a slot. */
  sitemapChunkBytesMax: 256 * KB,
  /** An index in an index in an index: no site needs more. */
  sitemapDepthMax: 3,
  /** A chunk that takes longer in its thread costs the thread its life. */
  sitemapChunkMsMax: 10_000,
  /** From the first byte to the last, our own waits apart. */
  sitemapMsMax: 10 * 60_000,

  // Recrawl
  /** Answers in a row that say that a page is gone; at the last it is never due again. The interval has doubled four times by then, so they span 30 intervals. */
  recrawlGoneTimesMax: 5,
  /** URLs that are due and go back to the queue in one commit, one such batch at a time: planning 500 holds the loop for some milliseconds. */
  dueUrlsPerCommitMax: 500,
  /** The time of day may jump: whoever waits for a due time looks again after this. */
  dueLookMsMax: 60_000,
  /** A longer ETag or Last-Modified is not kept: it would be in a page's row for ever. */
  validatorCharsMax: 1_024,

  // Commit and consumer
  /** A batch is committed when it is this old, this long or this large. */
  commitAgeMsMax: 100,
  /** Planning a batch holds the loop: measured 0.25 ms a page of 150 links. */
  commitUrlsMax: 128,
  commitBytesMax: 16 * MB,
  /** Outcomes that wait for the next commit; one more and results stay in their slots. */
  commitQueueUrlsMax: 512,
  /** Pages handed to the consumer, or waiting for it, and not acknowledged. */
  pagesUnackedMax: 256,
  /** Calls of add(): URLs taken into one commit; the caller waits for it. */
  addUrlsPerCommitMax: 2_000,
  /** SimHashes of stored pages that new ones are compared with: 24 bytes each. */
  nearDuplicatesMax: 1_000_000,
  /** Compared for each of the four blocks of a SimHash; by chance 15 of a million have a block in common. */
  nearDuplicateCandidatesMax: 256,

  // Store
  /** Page rows that a requeue looks at before others have their turn, and the most that it puts back in one commit. */
  requeueRowsPerTurnMax: 500,
  /** Durability `interval`: what was committed is asked onto the disk so long afterwards. As Redis does with its log, `appendfsync everysec`. */
  syncIntervalMs: 1_000,
  /** How often the room on the disk is looked at, and a write tried again that found none. */
  diskLookMs: 1_000,
  /**
   * With less room nothing more is fetched: bodies in slots and in flight may become WARC records (2 x 64 MB), two
   * batches lines (2 x 16 MB) and pages of the store, which copies what it changes.
   */
  diskFreeBytesMin: 256 * MB,
  /** Of a small file system this share, when it is less. */
  diskFreeShareMin: 0.05,
  /** Of --max-store: from this share on links are refused, so that what is queued already can end. */
  storeLinksShareMax: 0.9,
  /**
   * A row of the queue takes no further URL from this size on. Measured with 300,000 URLs: 184 bytes in use for each, 186 with
   * 500 and 193 with 1,900; what claims and commits cost did not differ beyond the noise.
   */
  queueRowBytesMax: 1_000,
  /** Rows that are looked at for a worse URL when a queue is full; beyond them the new one is refused. */
  evictionRowsMax: 16,

  /** Lines of each kind that a check reports; the others are counted. */
  checkLinesMax: 100,
  /** WARC files that a check holds open: each worker incarnation wrote its own, and their records take turns. */
  checkFilesOpenMax: 64,

  // Scheduling
  /** Hosts with work that are in memory; the others wait in the store. */
  hostsActiveMax: 100_000,
  /** Hosts whose politeness unit is being looked up, when units are addresses. */
  hostsResolvingMax: 1_000,
  /** Hosts that are read from the store in one turn of the event loop. */
  hostsPerRefillMax: 256,
  /** URLs of one host claimed ahead; fewer when so many hosts have work that all of theirs would be more than the second. */
  claimUrlsPerHost: 8,
  claimedUrlsMax: 32_768,
  /** Between hosts that are ready, a step of priority of the next URL is so much later a turn, and in all at most the second. */
  handicapStepMs: 20,
  handicapMsMax: 1_000,
  /** Patterns of `--host-limit` and `setLimit`. */
  hostRulesMax: 10_000,
  /** A host that was given up gets a new chance after this; meanwhile its URLs end with the code that it was given up for. */
  hostGivenUpMs: 24 * 60 * 60_000,
  /** Names of the scope in the workers' filter: 64-bit hashes, so 16 MB at most. */
  scopeNamesMax: 1_000_000,

  // Files
  /** A WARC file is closed and a new one begun. The WARC guidelines recommend 1 GB. */
  warcFileBytesMax: 1024 * MB,
  /** A file of page records is closed and a new one begun: few files, and none too large for common tools. */
  jsonlFileBytesMax: 1024 * MB,
  /** How long a start waits for a dying owner of the directory. */
  lockWaitMs: 5_000,
  controlMessageBytesMax: 64 * KB,
  /** How long one side of the control channel waits for a line of the other. */
  controlAnswerMsMax: 2_000,
  /** A stop parses what lies in slots for so long; then pages that no worker has taken go back to the frontier. */
  stopDrainMs: 1_000,
  /** SIGINT to exit, all included. */
  stopMsMax: 2_000,

  // Retries as load (schedule/retry-budget.ts says why)
  retryTokensMax: 100,
  retryTokensPerHostMax: 10,
  /** The floors: what time alone earns. */
  retryTokenMs: 1_000,
  retryHostTokenMs: 10_000,

  // The network here (schedule/network-watch.ts)
  /** With fewer hosts that have work, failures of most of them say nothing of the network. */
  networkHostsMin: 3,
  /** Of the hosts that have something under way. */
  networkDownShareMin: 0.8,
  /** And no answer came for so many of the mean gaps between answers: a few that fail together, as some do, are not most. */
  networkQuietGapsMin: 3,
  /** A failure waits so long for an answer of another host, which shows that the network is there. */
  networkHoldMsMax: 2_000,
  /** It waits longer while the whole crawl is silent, and was answered so many times in such a time before. */
  networkSilenceGapsMin: 8,
  /** But not for ever: as long as a fetch has by default. */
  networkSilenceMsMax: 30_000,
  networkProbeMsMin: 1_000,
  networkProbeMsMax: 15_000,
  /** A run whose network is away for longer than this and than the tail ends: what is left is parked. */
  networkDownMsMax: 10 * 60_000,

  // Health (schedule/health.ts)
  /** Below it a host rests; from the second on it is well again. */
  healthMin: 0.2,
  healthWellMin: 0.4,
  /** A share of bad answers halves in this time without any. */
  healthHalfLifeMs: 10 * 60_000,
  healthRestMsMin: 30_000,
  healthRestMsMax: 20 * 60_000,
  /** Rests in a row without one good answer, about a quarter of an hour in all; then the host is given up. */
  healthRestsMax: 6,

  // Metrics
  /** Hosts that are named among the worst. */
  worstHostsMax: 20,
  /** The same look at all hosts serves everybody who asks for it within this time. */
  hostSurveyMsMax: 1_000,
  /** How often pressure is published on its diagnostics channel while somebody listens. */
  pressureBeatMs: 1_000,
  /** Connections to the port of --listen. */
  listenConnectionsMax: 32,
  /** A client of it has so long to send its request. */
  listenRequestMsMax: 5_000,

  // The gate: what the whole crawl may have under way
  /** The least --memory; and what a crawl takes at least when the machine has little. */
  memoryBytesMin: 64 * MB,
  /** How often the gate looks at memory, the loop's utilisation and the speed of the stages. */
  gateLookMs: 250,
  /** Of a fetch under way. Measured: 17 KB while it waits for an answer, 58 KB with TLS; and one whose body waits for room holds a piece of it: 2,000 of those took 338 MB in place of 256. */
  socketBytes: 64 * KB,
  /** A ceiling beyond what one event loop was tried with. */
  connectionsMax: 100_000,
  /** Pages of the consumer's window, as they are in memory. */
  windowBytesMax: 16 * MB,
  /** A parse worker's heap is never made smaller, however small the budget. */
  workerHeapMbMin: 64,

  // Gateways
  /** Gateways in one file, and its length. */
  gatewaysMax: 64,
  gatewayFileBytesMax: 1 * MB,
  /** A quota that is filled again later than this is asked about after this. */
  gatewayQuotaMsMax: 24 * 60 * 60_000,
  /** A reset that is nearer, or past, is taken as this: the gateway's time of day need not be ours. */
  gatewayQuotaMsMin: 5_000,
  /** A proxy that has answered 5xx for so many hosts in a row, and reached none between them, is itself what fails. */
  gatewayHostsFailedMax: 8,

  // Shedding
  /** Hosts that step back in one second, and that have stepped back at once. */
  shedTurnsMax: 256,
  shedHostsMax: 4_096,
  /** After so long a host that has stepped back has its turn in any case. */
  shedHoldMsMax: 60_000,
  /** Lines for the shed log that wait for the disk; more are counted and not written. */
  shedLogBytesMax: 1 * MB,
  /** Links that one commit refuses for want of room and that are written to the log; more are counted. */
  shedLinksReportedMax: 2_000,

  // Host limiter. Constants without another source were chosen by bench/limiter.ts; schedule/limiter.ts has the figures.
  /** Successes at a limit that is the most that was not refused, before one more is tried: at first, and at most after it was refused again and again. */
  limiterPatienceMin: 8,
  limiterPatienceMax: 512,
  /** After so long one more is tried whatever the patience: sites change. */
  limiterMemoryMs: 10 * 60_000,
  /** Successes by which a limit that is being tried is believed: a latency is a mean of 32; and at most. */
  limiterProbeMin: 32,
  limiterProbeMax: 64,
  /** The same for a pace at most: with more, a host that fails 3 % of its requests at random ended at the longest pace. */
  pacePatienceMax: 8,
  /** The first and the longest wait before each start of a host that refuses one request at a time. */
  /** Strained answers in a row that are worth a throttle: two with two good ones between them at most. */
  limiterStrainMin: 1.7,
  paceMsMin: 500,
  paceMsMax: 60_000,
  /** A smaller rise of a host's latency is not taken for load: our own loop alone may be so late. */
  latencyRiseMsMin: 50,

  // robots.txt of one host
  /** Origins, which differ in scheme and port; of more the oldest verdict is forgotten. */
  robotsOriginsMax: 16,
  /** Characters of the sitemaps that are shown of an origin: a host's whole answer goes through the control channel. */
  robotsSitemapsShownCharsMax: 2_000,

  // Directives of pages
  /** Characters read of one meta element or header field with robots directives; the longest of 360 real pages has 92. */
  directivesCharsMax: 4_096,
  // Cookies. RFC 6265 section 6.1 asks for at least 4,096 bytes a cookie and 50 cookies a domain
  /** A longer Set-Cookie field is not read. */
  cookieBytesMax: 4 * KB,
  /** Cookies of one site, its subdomains together, and cookies that one answer may set. */
  cookiesPerSiteMax: 50,
  /** Of a Cookie field: Apache takes a field of 8,190 bytes by default, nginx a line of 8 KB. */
  cookieHeaderBytesMax: 8_000,
  /** Sites that have cookies; and all of those together, each with what it takes beside its text. Measured: about 600 bytes of heap with a text of 91 and two cookies a site, 157 with fifty. */
  cookieSitesMax: 10_000,
  cookieJarBytesMax: 16 * MB,
  cookieOverheadBytes: 512,

  // Headers by origin
  /** Origins in one file, and its length. */
  hostHeadersOriginsMax: 1_000,
  hostHeadersFileBytesMax: 1 * MB,
  /** Of one origin, all together: as a Cookie field. */
  hostHeadersBytesMax: 8_000,

  // Names of hosts (RFC 1035 section 2.3.4: 255 octets on the wire, of which two are the first length and the root)
  hostBytesMax: 253,
  hostLabelBytesMax: 63,

  // Redirects besides `redirectsMax`
  /** A refresh of a page within so many seconds is a redirect, a slower one a link. Apache Nutch draws a line there too (Fetcher.PERM_REFRESH_TIME). */
  refreshHopSecondsMax: 5,
  /** An address that has moved for good is asked at least once in so many ceilings of its recrawl policy: as rarely as a page that is gone before it is given up. */
  recrawlMovedCeilingsMax: 16,
  // What servers send besides pages (fetch/framing-bound.ts)
  /** Of a response, apart from its body: its head, interim responses before it, and what divides the body. */
  framingBytesMax: 64 * KB,
  /** And for each byte of the body: a chunk of one byte has five around it (RFC 9112 section 7.1). */
  framingBytesPerBodyByteMax: 8,
  /** A longer reason phrase is cut: nothing reads it, and the records and the archive keep it. */
  reasonCharsMax: 256,
  // What is read of a sitemap (threads/sitemap/)
  /** sitemaps.org: "this value must be less than 2,048 characters". */
  sitemapLocCharsMax: 2_048,
  /** Of the thread that reads them, which holds little more than a chunk and its entries of each. */
  sitemapHeapMb: 64,
  /** The thread ends when no sitemap was read for so long, and has so long to end by itself. */
  sitemapIdleMsMax: 5_000,
  sitemapExitMsMax: 500,

  // Files of hosts (host-list.ts): a million names are about 20 MB
  hostListBytesMax: 32 * MB,
  /** How often that of --exclude-hosts is looked at while a crawl is open. */
  excludeHostsLookMs: 5_000,

  // Sitemaps in the crawl
  /** Sitemaps that are read at once: each holds a chunk of bytes here and about as much in the thread. Those beyond go back to the queue. */
  sitemapsReadingMax: 8,
  /** Of them those of one host. */
  sitemapsReadingPerHostMax: 2,
  /** The first that finds no place comes again after this, each further one so much later. */
  sitemapPutOffMs: 100,
  /** Entries of a sitemap that are stored in one commit. */
  sitemapUrlsPerCommitMax: 500,
} as const

invariant(limits.commitQueueUrlsMax >= limits.commitUrlsMax, 'a whole batch fits into the commit queue')
invariant(limits.pagesUnackedMax <= limits.commitQueueUrlsMax, 'what the consumer holds can be committed at once')
invariant(limits.linkCharsMax < limits.urlBytesMax, 'a link that is too long to follow can be read')
invariant(limits.backoffMsMin < limits.backoffMsMax, 'back-off has room to grow')
invariant(limits.hostRestMsMax <= limits.backoffMsMax, 'a host that does not answer rests no longer than one that asks for it')
invariant(limits.retryAfterMsMax < limits.hostGivenUpMs, 'a host that was given up is not tried again during its rest')
invariant(limits.metaBytesMax > 2 * limits.urlBytesMax, 'a URL and its referrer fit into a slot')
invariant(limits.suspectsMax <= limits.hostsResolvingMax, 'the hosts of suspects are all brought into memory before any other')
invariant(limits.slotsMin >= 2, 'one slot can be filled while another is parsed')
invariant(limits.robotsOriginsMax * limits.robotsSitemapsShownCharsMax <= limits.controlMessageBytesMax / 2, 'what is told of a host fits into one message')
invariant(limits.robotsAgeMsMin < limits.robotsAgeMsMax, 'a robots.txt lives for a while')
invariant(limits.dnsTtlMsMin < limits.dnsTtlMsMax, 'a look-up lives for a while')
invariant(limits.diskFreeBytesMin >= 2 * limits.bodyBytesInFlightMax + 4 * limits.commitBytesMax, 'what is under way fits on the disk')
invariant(limits.stopDrainMs < limits.stopMsMax, 'a stop has time to commit what it drained')
invariant(limits.networkProbeMsMin < limits.networkProbeMsMax, 'probes of the network have room to grow rarer')
invariant(limits.healthMin < limits.healthWellMin, 'a host that recovers does not rest again at once')
invariant(limits.cookieBytesMax <= limits.cookieHeaderBytesMax, 'every cookie that is kept can be sent')
invariant(limits.framingBytesMax > 2 * limits.headerBytesMax, 'a head as large as it may be can follow interim responses')
invariant(limits.workerHeapMbMin <= limits.workerHeapMb, 'a worker of a small budget has no larger heap')
