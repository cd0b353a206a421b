// pg-boss: adds jobs that do nothing and carries them out. URL JOBS CALLERS single|batches; prints how many were completed and
// the seconds that took. Single: so many callers fetch and complete one job each. Batches: a worker that takes as many jobs as
// there are callers at a time and goes on while it gets so many.
import { PgBoss } from 'pg-boss';

const [url, jobs, callers, how] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4]), process.argv[5]];
const boss = new PgBoss({ connectionString: url, max: callers + 2 });
boss.on('error', error => { throw error; });
await boss.start();
const queue = `nothing-${how}`;
await boss.createQueue(queue);
await boss.insert(queue, Array.from({ length: jobs }, () => ({ data: {} })));

let completed = 0;
const begun = performance.now();
if (how === 'batches') {
  await boss.work(queue, { batchSize: callers, burstWhenBatchFull: true }, async batch => { completed += batch.length; });
  // The last ones count when they are completed, not when they were begun.
  const left = async () => (await boss.getQueueStats(queue)).activeCount + (await boss.getQueueStats(queue)).queuedCount;
  while (completed < jobs || (await left()) > 0) await new Promise(resolve => setTimeout(resolve, 5));
} else {
  const caller = async () => {
    for (;;) {
      const [job] = await boss.fetch(queue);
      if (!job) return;
      await boss.complete(queue, job.id);
      completed += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
const seconds = (performance.now() - begun) / 1000;
await boss.stop({ graceful: false });
console.log(JSON.stringify({ jobs: completed, seconds }));
process.exit(0);
