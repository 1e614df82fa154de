//! The page of the road: its texts, and what each contender is called and gets wrong.

use super::Lang;

/// The page's texts in one language.
pub(crate) struct RoadWords {
    pub(crate) title: &'static str,
    /// In the footer of every page.
    pub(crate) link: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) run: fn(&Run<'_>) -> String,
    pub(crate) chart: &'static str,
    pub(crate) answers: &'static str,
    pub(crate) orders: &'static str,
    pub(crate) table: &'static str,
    pub(crate) contender: &'static str,
    pub(crate) oversold: &'static str,
    pub(crate) doubled: &'static str,
    pub(crate) lost: &'static str,
    pub(crate) success: &'static str,
    pub(crate) statements: &'static str,
    pub(crate) commands: &'static str,
    pub(crate) audit: &'static str,
    pub(crate) passes: &'static str,
    pub(crate) fails: &'static str,
    pub(crate) of: fn(usize, usize) -> String,
    pub(crate) notes: &'static str,
    pub(crate) why: &'static str,
    contenders: [(&'static str, &'static str, &'static str); 18],
}

/// What a run was like.
pub(crate) struct Run<'a> {
    pub(crate) date: &'a str,
    pub(crate) cores: usize,
    /// How the programs were built: release or debug.
    pub(crate) build: &'a str,
    pub(crate) users: u32,
    pub(crate) stock: u32,
    pub(crate) concurrency: u32,
}

impl RoadWords {
    /// What a contender is called, and what is to say about it.
    pub(crate) fn contender(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let found = self.contenders.iter().find(|(known, ..)| *known == name);
        found.map(|(_, title, text)| (*title, *text))
    }
}

impl Lang {
    /// The texts of the road's page.
    pub(crate) fn road(self) -> &'static RoadWords {
        match self {
            Self::En => &EN,
            Self::Zh => &ZH,
        }
    }
}

static EN: RoadWords = RoadWords {
    title: "The road to this design",
    link: "How we got here",
    lead: "Every earlier way to sell vouchers in a flash sale, really built, put under the same load, killed in the middle, and audited.",
    run: |run| {
        format!(
            "Run of {} on {} cores ({} build): {} users ask twice at once for {} vouchers, {} requests at a time. Compare rows; absolute figures belong to that machine.",
            run.date, run.cores, run.build, run.users, run.stock, run.concurrency
        )
    },
    chart: "Answers and orders per second, on a logarithmic scale",
    answers: "Answers per second",
    orders: "Orders written per second",
    table: "Figures and audit of every way",
    contender: "Way",
    oversold: "Oversold",
    doubled: "Doubled",
    lost: "Lost after kill -9",
    success: "Success",
    statements: "Statements per order",
    commands: "Redis commands per order",
    audit: "Audit",
    passes: "Passes",
    fails: "Fails",
    of: |lost, told| format!("{lost} of {told}"),
    notes: "Doubled: second orders of one user under load, under a lock’s faults, and after the crash. Lost: orders that a buyer was told of and that nobody ever wrote. Success: of the requests that met stock, how many got it.",
    why: "What each gets wrong",
    contenders: [
        (
            "check-then-decrement",
            "Check, then decrement",
            "Reads the stock and takes one in a second statement. Everybody who read before the last unit went takes one too. Next: compare when writing.",
        ),
        (
            "optimistic-version",
            "Optimistic, by version",
            "Writes only if the row has the version that was read. Never oversells, but refuses nearly everybody while the shelves are full. Next: without a column of its own.",
        ),
        (
            "optimistic-stock",
            "Optimistic, same stock",
            "The stock serves as the version, and the refusals stay: whether the number is what it was is the wrong question. Next: the right one.",
        ),
        (
            "stock-above-zero",
            "Optimistic, stock > 0",
            "Asks only that something is left. Sells each unit once, but two to one user. Next: look for the user’s order.",
        ),
        (
            "one-per-user-unguarded",
            "One per user, unguarded",
            "Two requests of one user look at the same moment, find nothing, and both write. Next: they take turns.",
        ),
        (
            "mutex",
            "A mutex in the process",
            "A mutex for each user, held until the commit. Good for one process. Next: two of them.",
        ),
        (
            "mutex-two-processes",
            "Same mutex, two processes",
            "Each process has mutexes of its own, and the user’s requests meet two of them. Next: a lock that both see.",
        ),
        (
            "lease-first",
            "Lease lock, first form",
            "Set if absent, with an expiry; released by deleting. A late holder deletes somebody else’s lock. Next: look whose it is.",
        ),
        (
            "lease-owner-check",
            "Lease lock, owner check",
            "Looks, then deletes. Between the two steps the lease can end. Next: one step.",
        ),
        (
            "lease-script",
            "Lease lock, by script",
            "Deletes only its own. Work longer than the lease still runs beside the next holder’s. Next: renew.",
        ),
        (
            "lease-reentrant",
            "Reentrant lock, renewed",
            "Renewed for as long as its holder lives; a process that stands still renews nothing, and the buyer still waits for the database. Next: decide in one atomic step.",
        ),
        (
            "memory-queue",
            "Script, queue in memory",
            "One script decides, the answer goes out at once, a thread writes behind it. A crash loses the queue. Next: keep it outside the process.",
        ),
        (
            "redis-list",
            "Script, Redis list",
            "What was popped and not yet written is nowhere when the worker dies. Next: tell everybody who listens.",
        ),
        (
            "publish-subscribe",
            "Script, publish/subscribe",
            "What was published while nobody listened was never heard. Next: keep what was said.",
        ),
        (
            "stream-from-now",
            "Script, stream from now",
            "The stream stays, but a new reader begins at its end: what came meanwhile is missed. Next: begin at the start.",
        ),
        (
            "stream-from-start",
            "Script, stream from the start",
            "A new reader reads everything again and writes it twice. Next: a broker that knows how far it came, and a consumer that bears repeats.",
        ),
        (
            "rabbitmq",
            "Script, RabbitMQ",
            "From the broker on nothing is lost, but a process that dies between decision and publishing leaves an order that nobody writes. Next: both in one step.",
        ),
        (
            "product",
            "Script, stream, group (this shop)",
            "Decision and stream entry are one script, a group remembers what was delivered, and an entry is acknowledged after the commit. Any process may die at any moment.",
        ),
    ],
};

static ZH: RoadWords = RoadWords {
    title: "通往这一设计的路",
    link: "设计之路",
    lead: "秒杀走过的每一种做法都真实实现：同样的负载，中途强杀进程，同样的审计。",
    run: |run| {
        format!(
            "{} 的一次运行，{} 核（{} 构建）：{} 位用户每人同时请求两次，抢 {} 张优惠券，并发 {}。请比较各行；绝对数值只属于那台机器。",
            run.date, run.cores, run.build, run.users, run.stock, run.concurrency
        )
    },
    chart: "每秒应答数与每秒订单数（对数刻度）",
    answers: "每秒应答",
    orders: "每秒落库订单",
    table: "各种做法的数据与审计",
    contender: "做法",
    oversold: "超卖",
    doubled: "重复下单",
    lost: "kill -9 后丢失",
    success: "成功率",
    statements: "每单 SQL 语句",
    commands: "每单 Redis 命令",
    audit: "审计",
    passes: "通过",
    fails: "不通过",
    of: |lost, told| format!("{lost}／{told}"),
    notes: "重复下单：同一用户的第二单，包括负载下、锁故障下和崩溃之后。丢失：已告知买家、却始终没有写入的订单。成功率：遇到库存的请求中真正抢到的比例。",
    why: "各自错在哪里",
    contenders: [
        (
            "check-then-decrement",
            "先查后减",
            "先读库存，再用另一条语句扣减。最后一件卖出前读过库存的人都会再扣一次。下一步：写入时比较。",
        ),
        (
            "optimistic-version",
            "乐观锁：版本号",
            "版本未变才写入。不会超卖，但货架满着也几乎拒绝所有人。下一步：不另设字段。",
        ),
        (
            "optimistic-stock",
            "乐观锁：比较库存",
            "拿库存当版本号，照样大量拒绝：数字变没变，本就不是该问的问题。下一步：问对问题。",
        ),
        (
            "stock-above-zero",
            "乐观锁：库存 > 0",
            "只要求还有剩余。每件只卖一次，但一人可得两件。下一步：先查此人是否已有订单。",
        ),
        (
            "one-per-user-unguarded",
            "一人一单：无保护",
            "同一用户的两个请求同时查询，都没查到，于是都写入。下一步：让它们排队。",
        ),
        (
            "mutex",
            "一人一单：进程内互斥锁",
            "每位用户一把锁，提交后才释放。单进程可靠。下一步：两个进程。",
        ),
        (
            "mutex-two-processes",
            "同一把锁，两个进程",
            "每个进程各有各的锁，同一用户的请求遇到两把。下一步：双方都看得见的锁。",
        ),
        (
            "lease-first",
            "租约锁：初版",
            "不存在才设置，带过期时间，释放即删除。迟到的持有者会删掉别人的锁。下一步：看清是谁的。",
        ),
        (
            "lease-owner-check",
            "租约锁：校验持有者",
            "先看再删。两步之间租约可能到期。下一步：一步完成。",
        ),
        (
            "lease-script",
            "租约锁：脚本释放",
            "只删自己的锁。但工作时间超过租约，仍会与下一位并行。下一步：续期。",
        ),
        (
            "lease-reentrant",
            "可重入锁，自动续期",
            "持有者在，锁就续期；整个进程停住则无人续期，而且买家仍要等数据库。下一步：一步原子判定。",
        ),
        (
            "memory-queue",
            "脚本 + 内存队列",
            "脚本判定，立即应答，后台线程写库。崩溃即丢失队列。下一步：把队列放到进程之外。",
        ),
        (
            "redis-list",
            "脚本 + Redis 列表",
            "弹出而未写入的订单，随工作进程一同消失。下一步：告诉所有订阅者。",
        ),
        (
            "publish-subscribe",
            "脚本 + 发布订阅",
            "无人订阅时发布的消息，谁也没听见。下一步：把消息留下来。",
        ),
        (
            "stream-from-now",
            "脚本 + 流，从最新读起",
            "流还在，但新的读者从末尾开始，其间的消息都错过。下一步：从头读。",
        ),
        (
            "stream-from-start",
            "脚本 + 流，从头读起",
            "新的读者全部重读，也就重复写入。下一步：由消息中间件记住进度，消费者能承受重复。",
        ),
        (
            "rabbitmq",
            "脚本 + RabbitMQ",
            "进了消息中间件就不会丢，但进程若死在判定与发布之间，订单便无人写入。下一步：两步合一。",
        ),
        (
            "product",
            "脚本 + 流 + 消费组（本店）",
            "判定与入流是同一个脚本，消费组记住已投递的消息，提交之后才确认。任何进程随时可以崩溃。",
        ),
    ],
};
