/**
 * Loaded before the engine in each of its processes and threads (`--import`): sink files are ended at a few pages, so
 * that kills meet the change from one file to the next. Everything else about them stays as it is.
 */
import { limits } from '../../engine/core/limits.ts'

Object.assign(limits, { jsonlFileBytesMax: 16 * 1_024, warcFileBytesMax: 64 * 1_024 })
