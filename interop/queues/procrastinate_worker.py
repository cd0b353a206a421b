"""procrastinate: adds jobs that do nothing and carries them out. URL JOBS CALLERS; prints how many were completed and the
seconds from the first one's start to the last one's end, both as the database dated them."""

import asyncio
import json
import sys

from procrastinate import App, PsycopgConnector

url, jobs, callers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
app = App(connector=PsycopgConnector(conninfo=url, min_size=callers, max_size=callers + 2))


@app.task(name="nothing")
async def nothing() -> None:
    pass


async def main() -> None:
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        ids = await nothing.batch_defer_async(*({} for _ in range(jobs)))
        await app.run_worker_async(concurrency=callers, wait=False, install_signal_handlers=False)
        row = await app.connector.execute_query_one_async(
            "select extract(epoch from max(at) filter (where type = 'succeeded') - min(at) filter (where type = 'started'))::float8"
            " as seconds, count(*) filter (where type = 'succeeded') as jobs from procrastinate_events"
            " where job_id between %(first)s and %(last)s",
            first=min(ids),
            last=max(ids),
        )
    print(json.dumps(row))


asyncio.run(main())
