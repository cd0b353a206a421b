// graphile-worker: adds jobs that do nothing and carries them out. URL JOBS CALLERS single|batches; prints how many were completed
// and the seconds from the first one's start to the last one's completion. Batches: a local queue of one more than the callers,
// as its documents recommend, and completions that are gathered.
import { EventEmitter } from 'node:events';
import { Logger, makeWorkerUtils, run } from 'graphile-worker';

const [url, jobs, callers, how] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4]), process.argv[5]];
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ connectionString: url, logger });
await utils.migrate();
await utils.addJobs(Array.from({ length: jobs }, () => ({ identifier: 'nothing', payload: {} })));
await utils.release();

let begun, completed = 0, ended;
const events = new EventEmitter();
const all = new Promise(resolve => {
  events.on('job:complete', ({ error }) => {
    if (error) throw error;
    completed += 1;
    if (completed < jobs) return;
    ended = performance.now();
    resolve();
  });
});
const batches = { localQueue: { size: callers + 1 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const worker = {
  connectionString: url,
  concurrentJobs: callers,
  maxPoolSize: callers + 2,
  ...(how === 'batches' ? batches : {}),
};
const taskList = { nothing: async () => { begun ??= performance.now(); } };
const runner = await run({ preset: { worker }, taskList, events, logger, noHandleSignals: true });
await all;
await runner.stop();
console.log(JSON.stringify({ jobs: completed, seconds: (ended - begun) / 1000 }));
process.exit(0);
